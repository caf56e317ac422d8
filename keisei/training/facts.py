"""What is worth knowing about a run when it starts."""

import platform
from typing import Any

import numpy as np
import torch

from keisei import __version__
from keisei.config_schema import AppConfig
from keisei.ppo.agent import PPOAgent
from keisei.ppo.buffer import RolloutBuffer
from keisei.training.background import is_in_background


def run_facts(config: AppConfig, agent: PPOAgent, buffer: RolloutBuffer) -> dict[str, Any]:
    """Sizes, device and versions, by name."""
    compute = agent.compute
    return {
        "parameters": sum(parameter.numel() for parameter in agent.model.parameters()),
        "planes": agent.spec.num_planes,
        "features": agent.spec.name,
        "model": config.model.type,
        "device": str(compute.device),
        "precision": str(compute.autocast_dtype or torch.float32).removeprefix("torch."),
        "compile": compute.compile,
        "threads": compute.threads,
        "learners": agent.ranks.size,
        "buffer_bytes_per_ply": round(buffer.bytes_per_ply, 1),
        "minibatch_size": agent.minibatch_size,
        "background_evaluation": is_in_background(
            config.evaluation, compute, agent.ranks.local_size
        ),
        "mate_plies": config.selfplay.mate_plies,
        "keisei": __version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }
