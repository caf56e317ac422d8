"""`PPOAgent`: the learner of the towers. Trains an `ActorCritic` by PPO, with torch.

Loss and minibatches are in `keisei.ppo.losses`.
"""

import copy
import logging
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from keisei.config_schema import AppConfig
from keisei.errors import KeiseiError
from keisei.network.loading import StoredNetwork
from keisei.network.model_factory import build_model
from keisei.network.predictor import weights_checksum
from keisei.network.towers.compilation import is_out_of_memory
from keisei.network.towers.device import (
    Compute,
    choose_compute,
    free_share_of,
    learner_device,
)
from keisei.network.towers.model import ActorCritic, legal_log_probs
from keisei.network.towers.torch_predictor import TorchPredictor, model_weights
from keisei.network.towers.weights import load_weights, weight_tensors
from keisei.ppo.buffer import ExperienceBuffer
from keisei.ppo.distributed import TorchRanks
from keisei.ppo.learner import LearnSettings, Ranks, learner_threads
from keisei.ppo.losses import (
    LossTerms,
    LossWeights,
    Minibatch,
    MinibatchMaker,
    cross_entropy,
    entropy,
    kl_divergence,
    ppo_loss,
)
from keisei.ppo.ppo_learner import BackwardResult, LossFigures, PolicySamples, PPOLearner
from keisei.ppo.torch_state import (
    TorchProfiler,
    restore_torch_rng,
    to_arrays,
    to_tensors,
    torch_rng_state,
)
from keisei.shogi.features import FeatureSpec, feature_spec

logger = logging.getLogger(__name__)

AUTO_CPU_MINIBATCH = 512
AUTO_GPU_MINIBATCH = 8_192
MAX_AUTO_MINIBATCH = 32_768
MIN_AUTO_MINIBATCH = 16
BETA1 = 0.9
ADAM_EPSILON = 1e-5


def make_agent(
    config: AppConfig, *, seed: int, random: np.random.Generator, ranks: Ranks
) -> "PPOAgent":
    """Build the agent of one learner, on its device, with the cores that its workers leave to it.

    Args:
        config: the settings of the run.
        seed: of the initial weights; sets torch's global seed.
        random: decides the order of samples.
        ranks: all learners, of which this is one.
    """
    device = learner_device(config.device.device, ranks.local_rank, ranks.size)
    own = {
        "device": str(device),
        "threads": learner_threads(config, ranks, on_cpu=device.type == "cpu"),
    }
    compute = choose_compute(config.device.model_copy(update=own))
    torch.manual_seed(seed)
    agent = PPOAgent(config, compute, feature_spec(config.env.input_features), random, ranks)
    logger.info(
        "learning on %s in %s (device.mixed_precision=%s), %s (device.compile=%s)",
        compute.device,
        agent.facts()["precision"],
        config.device.mixed_precision,
        "uncompiled" if agent.model.compiled is None else "compiled",
        config.device.compile,
    )
    return agent


class PPOAgent(PPOLearner):
    """The learner of the towers: a model, its optimizer, and the moving average of its weights."""

    def __init__(
        self,
        config: AppConfig,
        compute: Compute,
        spec: FeatureSpec,
        random: np.random.Generator,
        ranks: Ranks | None = None,
    ) -> None:
        super().__init__(config.ppo, random, ranks or Ranks())
        self.compute = compute
        self.spec = spec
        self.model: ActorCritic = compute.prepare(build_model(config.model, spec))
        compute.compiled(self.model)
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(),
            lr=config.ppo.learning_rate,
            betas=(BETA1, config.ppo.beta2),
            eps=ADAM_EPSILON,
            weight_decay=config.ppo.weight_decay,
        )
        self.scaler = torch.amp.GradScaler(compute.device.type, enabled=compute.needs_scaler)
        self.average: ActorCritic | None = None
        """Exponential moving average of the weights, if ``ppo.ema_decay`` is above 0."""

        if config.ppo.ema_decay > 0.0:
            self.average = copy.deepcopy(self.model).requires_grad_(False)
        self.network = TorchPredictor(
            self.model, compute, spec, self.stopwatch, ply_limit=config.env.ply_limit
        )
        is_cpu = compute.device.type == "cpu"
        self._begin_minibatches(
            AUTO_CPU_MINIBATCH if is_cpu else AUTO_GPU_MINIBATCH,
            smallest=MIN_AUTO_MINIBATCH,
            largest=MAX_AUTO_MINIBATCH,
            modest=AUTO_CPU_MINIBATCH if is_cpu else 0,  # other programs use that memory too
        )
        self._maker = MinibatchMaker(spec, compute)

    @property
    def evaluation_network(self) -> TorchPredictor:
        """The network to evaluate: with the averaged weights if there are any."""
        best = self.average if self.average is not None else self.model
        ply_limit = self.network.ply_limit
        return TorchPredictor(best, self.compute, self.spec, ply_limit=ply_limit)

    @property
    def fingerprint(self) -> int:
        """CRC-32 checksum of the weights."""
        return weights_checksum(self.network.weights())

    def join_ranks(self) -> None:
        """Give all ranks the weights of the first rank.

        Raises:
            KeiseiError: The ranks compute in ways that cannot be averaged.
        """
        if not self.ranks.is_same(zlib.crc32(self.compute.device.type.encode())):
            raise KeiseiError(
                "the learners compute on different kinds of devices: set device.device"
            )
        if not self.ranks.is_same(self.minibatch_size):
            raise KeiseiError(
                "the learners have minibatches of different sizes: set ppo.minibatch_size"
            )
        if not self.ranks.is_same(int(self.compute.needs_scaler)):
            raise KeiseiError(
                "some learners compute in float16 and others do not, so their gradients have "
                "different scales: set device.mixed_precision to off, bf16 or fp16"
            )
        if isinstance(self.ranks, TorchRanks):
            for model in (self.model, self.average):
                if model is not None:
                    self.ranks.broadcast_weights(model)

    def stay_together(self) -> None:
        """Give all ranks the weights of the first rank again if they have diverged.

        Equal processors compute equal weights from equal gradients; different ones may round
        differently, and the differences add up.
        """
        if self.ranks.size > 1 and not self.ranks.is_same(self.fingerprint):
            logger.warning("the learners' weights have diverged: all take those of the first")
            self.join_ranks()

    def state(self) -> dict[str, Any]:
        """Everything that learning depends on, as plain values and arrays, for a checkpoint.

        On a CPU the arrays share the memory of the weights and moments: copy them to keep them.
        """
        state: dict[str, Any] = {
            "model": model_weights(self.model),
            "optimizer": {"state": to_arrays(self.optimizer.state_dict()["state"])},
            "scaler": to_arrays(self.scaler.state_dict()),
            "minibatch_size": self.minibatch_size,
            "bad_minibatches": self.bad_minibatches,
            "torch_rng": to_arrays(torch_rng_state()),
        }
        if self.average is not None:
            state["ema"] = model_weights(self.average)
        return state

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned.

        Raises:
            KeiseiError: The state belongs to another network.
        """
        try:
            self.model.load_state_dict(weight_tensors(state["model"]))
        except RuntimeError as error:
            raise KeiseiError(
                "the network of the checkpoint is not the one of the settings; a run keeps its "
                "network. To continue with other settings, start a new run with run.start_from "
                "set to this one"
            ) from error
        self._restore_moments(to_tensors(state["optimizer"]["state"]))
        if state["scaler"]:  # empty if the run has not computed in float16 so far
            self.scaler.load_state_dict(to_tensors(state["scaler"]))
        self._restore_counts(state)
        if self.average is not None:  # its decay may have been set just now
            self.average.load_state_dict(weight_tensors(state.get("ema", state["model"])))
        restore_torch_rng(to_tensors(state["torch_rng"]))

    def _restore_moments(self, saved: Mapping[int, Any]) -> None:
        """Restore what the optimizer knows of each weight; its settings are those of this run."""
        groups = self.optimizer.state_dict()["param_groups"]
        weights = [weight for group in self.optimizer.param_groups for weight in group["params"]]
        for number, moments in saved.items():  # torch compares neither numbers nor shapes
            arrays = (one for one in moments.values() if torch.is_tensor(one) and one.ndim)
            if not 0 <= number < len(weights) or any(
                one.shape != weights[number].shape for one in arrays
            ):
                raise KeiseiError("the optimizer of the checkpoint is that of another network")
        self.optimizer.load_state_dict({"state": saved, "param_groups": groups})
        self._lay_out_moments()

    def _lay_out_moments(self) -> None:
        """Give the optimizer's moments the memory layout of their weights, such as channels_last.

        Checkpoints keep no layout. Optimizers are faster, and some of their kernels only correct,
        if both have the same one.
        """
        for parameter, moments in self.optimizer.state.items():
            for name, moment in moments.items():
                if moment.shape == parameter.shape:
                    moments[name] = torch.empty_like(parameter.detach()).copy_(moment)

    def start_from(self, stored: StoredNetwork) -> None:
        """Start with the weights of a trained network, which may read other planes.

        Raises:
            WeightsError: They do not fit the model.
        """
        notes = load_weights(
            self.model,
            weight_tensors(stored.weights),
            features_from=stored.spec,
            features_to=self.spec,
        )
        if self.average is not None:
            self.average.load_state_dict(self.model.state_dict())
        logger.info("starting with the weights of %s", stored.path)
        for note in notes:
            logger.info("%s", note)

    def prepare(self, buffer: ExperienceBuffer) -> None:
        """Do nothing: planes are written faster than a tower reads them."""

    def facts(self) -> dict[str, Any]:
        """Sizes, device and torch version, for the record of the run."""
        compute = self.compute
        return {
            "parameters": sum(parameter.numel() for parameter in self.model.parameters()),
            "device": str(compute.device),
            "precision": str(compute.autocast_dtype or torch.float32).removeprefix("torch."),
            "compile": "off" if self.model.compiled is None else "on",
            "threads": compute.threads,
            "minibatch_size": self.minibatch_size,
            "torch": torch.__version__,
        }

    def profiler(self, directory: Path) -> TorchProfiler:
        """Make a profiler of updates that writes into `directory`."""
        return TorchProfiler(directory)

    def _free_memory(self) -> float:
        return free_share_of(self.compute.device)

    def _shrink_minibatch(self) -> None:
        super()._shrink_minibatch()
        if self.compute.device.type == "cuda":
            torch.cuda.empty_cache()
        elif self.compute.device.type == "mps":
            torch.mps.empty_cache()

    def _out_of_memory(self) -> KeiseiError:
        return KeiseiError(
            f"{self.compute.device} is out of memory with a minibatch of {self.minibatch_size}; "
            "set ppo.minibatch_size to a smaller number or to auto, or use a smaller model"
        )

    def _backward(
        self,
        buffer: ExperienceBuffer,
        indices: npt.NDArray[np.int64],
        policy: PolicySamples,
        settings: LearnSettings,
    ) -> tuple[LossFigures | None, BackwardResult]:
        """Compute the gradient of a minibatch; see `PPOLearner`."""
        self.optimizer.zero_grad(set_to_none=True)
        try:
            minibatch = self._maker.make(buffer, indices, policy.advantages)
            with self.stopwatch:
                with self.compute.autocast():
                    terms = self._loss(minibatch, self._weights(settings), policy.divisor)
                figures = terms.figures()
                if not np.isfinite(figures.total):
                    return figures, BackwardResult.NON_FINITE
                self.scaler.scale(terms.total).backward()  # type: ignore[no-untyped-call]
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            return None, BackwardResult.OUT_OF_MEMORY
        return figures, BackwardResult.OK

    def _step(self, settings: LearnSettings) -> float:
        """Take one step of the optimizer; see `PPOLearner`."""
        for group in self.optimizer.param_groups:
            group["lr"] = settings.learning_rate
        parameters = list(self.model.parameters())
        with self.stopwatch:
            # Before they are unscaled: what overflowed in one rank is then infinite in all, so the
            # scalers of all ranks skip the step.
            if isinstance(self.ranks, TorchRanks):
                self.ranks.average_gradients(parameters)
            self.scaler.unscale_(self.optimizer)
            grad_norm = float(
                torch.nn.utils.clip_grad_norm_(parameters, self.settings.max_grad_norm)
            )
            if not np.isfinite(grad_norm) and not self.scaler.is_enabled():
                return grad_norm
            try:
                self.scaler.step(self.optimizer)  # skips the step after an overflow in float16
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                raise self._out_of_memory() from error  # too late to agree on a smaller minibatch
            self.scaler.update()
        return grad_norm

    def _drop_gradient(self) -> None:
        self.optimizer.zero_grad(set_to_none=True)

    def _weights(self, settings: LearnSettings) -> LossWeights:
        return LossWeights(
            clip_range=self.settings.clip_range,
            dual_clip=self.settings.dual_clip,
            value=self.settings.value_weight,
            entropy=settings.entropy_weight,
            ema_kl=self.settings.ema_kl,
        )

    def _loss(self, minibatch: Minibatch, weights: LossWeights, divisor: float) -> LossTerms:
        output = self.model(minibatch.planes, minibatch.legal)
        log_probs = legal_log_probs(output.logits, minibatch.counts)
        ema_kls: Tensor | None = None
        if weights.ema_kl > 0.0 and self.average is not None:
            with torch.no_grad():
                average = self.average(minibatch.planes, minibatch.legal)
                average_log_probs = legal_log_probs(average.logits, minibatch.counts)
            ema_kls = kl_divergence(log_probs, average_log_probs)
        cross_entropies = None
        if minibatch.targets is not None:
            cross_entropies = cross_entropy(log_probs, minibatch.targets)
        return ppo_loss(
            log_probs=log_probs.gather(1, minibatch.legal_indices[:, None])[:, 0],
            old_log_probs=minibatch.log_probs,
            advantages=minibatch.advantages,
            entropies=entropy(log_probs),
            value_losses=self.model.value_loss(output.value, minibatch.returns),
            ema_kls=ema_kls,
            learns_policy=minibatch.learns_policy,
            weights=weights,
            divisor=divisor,
            cross_entropies=cross_entropies,
        )

    def _update_average(self) -> None:
        if self.average is None:
            return
        decay = self.settings.ema_decay
        with torch.no_grad():
            for mean, new in zip(self.average.parameters(), self.model.parameters(), strict=True):
                mean.lerp_(new, 1.0 - decay)
