"""`PPOAgent`: the network, and how it learns from a rollout."""

import copy
import logging
import zlib
from collections.abc import Callable, Mapping
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from keisei.config_schema import AppConfig, PPOConfig
from keisei.errors import KeiseiError
from keisei.network.loading import StoredNetwork
from keisei.network.model_factory import build_model
from keisei.network.towers.device import Compute, choose_compute, learner_device
from keisei.network.towers.heads import legal_log_probs
from keisei.network.towers.model import ActorCritic
from keisei.network.towers.torch_predictor import TorchPredictor, model_weights, weight_tensors
from keisei.network.towers.weights import load_weights
from keisei.ppo.buffer import ExperienceBuffer
from keisei.ppo.distributed import TorchRanks
from keisei.ppo.learner import LearnSettings, Ranks, TrainingDivergedError, UpdateStats
from keisei.ppo.losses import (
    LossTerms,
    LossWeights,
    PolicySums,
    entropy,
    explained_variance,
    kl_divergence,
    normalized,
    ppo_loss,
)
from keisei.ppo.minibatch import Minibatch, MinibatchMaker
from keisei.ppo.resources import learner_threads
from keisei.ppo.torch_state import (
    TorchProfiler,
    restore_torch_rng,
    to_arrays,
    to_tensors,
    torch_rng_state,
)
from keisei.shogi.features import FeatureSpec, feature_spec
from keisei.timing import Stopwatch

logger = logging.getLogger(__name__)

AUTO_CPU_MINIBATCH = 512
AUTO_GPU_MINIBATCH = 8_192
SMALLEST_MINIBATCH = 16


class _Gradient(IntEnum):
    """How it went to compute one; of several ranks, the least counts."""

    NO_MEMORY = 0
    NON_FINITE = 1
    FINE = 2


def make_agent(
    config: AppConfig, *, seed: int, random: np.random.Generator, ranks: Ranks
) -> "PPOAgent":
    """The agent of one learner, on its device, with the cores that its workers leave to it."""
    device = learner_device(config.device.device, ranks.local_rank, ranks.size)
    own = {
        "device": str(device),
        "torch_threads": learner_threads(config, ranks, on_cpu=device.type == "cpu"),
    }
    compute = choose_compute(config.device.model_copy(update=own))
    torch.manual_seed(seed)
    return PPOAgent(config, compute, feature_spec(config.env.input_features), random, ranks)


class PPOAgent:
    """The network under training, its optimizer, and the average of its weights."""

    def __init__(
        self,
        config: AppConfig,
        compute: Compute,
        spec: FeatureSpec,
        random: np.random.Generator,
        ranks: Ranks | None = None,
    ) -> None:
        self.settings: PPOConfig = config.ppo
        self.compute = compute
        self.spec = spec
        self.random = random
        self.ranks = ranks or Ranks()
        """The learners whose gradients are averaged with these."""

        self.model: ActorCritic = compute.prepare(build_model(config.model, spec.num_planes))
        compute.compiled(self.model)
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(),
            lr=config.ppo.learning_rate,
            eps=1e-5,
            weight_decay=config.ppo.weight_decay,
        )
        self.scaler = torch.amp.GradScaler(compute.device.type, enabled=compute.needs_scaler)
        self.average: ActorCritic | None = None
        if config.ppo.ema_decay > 0.0:
            self.average = copy.deepcopy(self.model).requires_grad_(False)
        self.stopwatch = Stopwatch()
        """Runs while the network computes, acting or learning."""

        self.network = TorchPredictor(self.model, compute, spec, self.stopwatch)
        self.minibatch_size = self._first_minibatch_size()
        self._maker = MinibatchMaker(spec, compute)
        self._bad_minibatches = 0

    @property
    def best_network(self) -> TorchPredictor:
        """The network to evaluate: the averaged weights where there are any."""
        best = self.average if self.average is not None else self.model
        return TorchPredictor(best, self.compute, self.spec)

    @property
    def fingerprint(self) -> int:
        """A number that tells these weights from others."""
        checksum = 0
        for tensor in self.model.state_dict().values():
            checksum = zlib.crc32(tensor.detach().cpu().contiguous().numpy().tobytes(), checksum)
        return checksum

    def join_ranks(self) -> None:
        """Begin with the weights of the first rank in all of them."""
        if not self.ranks.is_same(zlib.crc32(self.compute.device.type.encode())):
            raise KeiseiError(
                "some learners compute on another kind of device than others: set device.device"
            )
        if not self.ranks.is_same(self.minibatch_size):
            raise KeiseiError(
                "the learners take minibatches of different sizes: set ppo.minibatch_size"
            )
        if not self.ranks.is_same(int(self.compute.needs_scaler)):
            raise KeiseiError(
                "some learners compute in float16 and others do not, so that their gradients have "
                "no common scale: set device.mixed_precision to off, bf16 or fp16"
            )
        if isinstance(self.ranks, TorchRanks):
            for model in (self.model, self.average):
                if model is not None:
                    self.ranks.broadcast_weights(model)

    def stay_together(self) -> None:
        """Take the first rank's weights again, should others have become unlike them.

        The same processors compute the same from the same gradients; different ones may round
        differently, and that adds up.
        """
        if self.ranks.size > 1 and not self.ranks.is_same(self.fingerprint):
            logger.warning("the learners' weights are no longer the same: all take the first's")
            self.join_ranks()

    def learn(
        self,
        buffer: ExperienceBuffer,
        settings: LearnSettings,
        on_epoch: Callable[[int], None] = lambda epoch: None,
    ) -> UpdateStats:
        """Improve the network by the experience of a finished rollout.

        Raises:
            TrainingDivergedError: The loss has been non-finite for too long.
        """
        for group in self.optimizer.param_groups:
            group["lr"] = settings.learning_rate
        weights = LossWeights(
            clip_range=self.settings.clip_range,
            value=self.settings.value_weight,
            entropy=settings.entropy_weight,
            ema_kl=self.settings.ema_kl,
        )
        totals = _Averages()
        epochs_done = 0
        for epoch in range(self.settings.epochs):
            is_near = self._learn_epoch(buffer, weights, totals)
            epochs_done += 1
            on_epoch(epoch)
            if not is_near:
                break
        self._update_average()
        metrics = totals.means()
        values = torch.from_numpy(buffer.values[buffer.learns_value])
        returns = torch.from_numpy(buffer.returns[buffer.learns_value])
        metrics["losses/explained_variance"] = explained_variance(values, returns)
        metrics = dict(zip(metrics, self.ranks.means(list(metrics.values())), strict=True))
        metrics["charts/learning_rate"] = settings.learning_rate
        metrics["charts/entropy_weight"] = settings.entropy_weight
        metrics["charts/minibatch_size"] = float(self.minibatch_size)
        metrics["charts/epochs_done"] = float(epochs_done)
        return UpdateStats(metrics, totals.samples * self.ranks.size)

    def state(self) -> dict[str, Any]:
        """Everything that learning depends on: plain values and arrays."""
        state: dict[str, Any] = {
            "model": model_weights(self.model),
            "optimizer": to_arrays(self.optimizer.state_dict()),
            "scaler": to_arrays(self.scaler.state_dict()),
            "minibatch_size": self.minibatch_size,
            "bad_minibatches": self._bad_minibatches,
            "torch_rng": to_arrays(torch_rng_state()),
        }
        if self.average is not None:
            state["ema"] = model_weights(self.average)
        return state

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go back to what `state` returned."""
        try:
            self.model.load_state_dict(weight_tensors(state["model"]))
        except RuntimeError as error:
            raise KeiseiError(
                "the network of the checkpoint is another one than the settings ask for; a run "
                "keeps its network. To continue with other settings, start a new run with "
                "run.start_from set to this one"
            ) from error
        self.optimizer.load_state_dict(to_tensors(state["optimizer"]))
        self._lay_out_moments()
        self.scaler.load_state_dict(to_tensors(state["scaler"]))
        self.minibatch_size = int(state["minibatch_size"])
        self._bad_minibatches = int(state["bad_minibatches"])
        if self.average is not None:
            self.average.load_state_dict(weight_tensors(state["ema"]))
        restore_torch_rng(to_tensors(state["torch_rng"]))

    def _lay_out_moments(self) -> None:
        """Put the optimizer's moments into the memory layout of their weights.

        Optimizers are faster, and some of their kernels only right, if both are laid out alike.
        """
        for parameter, moments in self.optimizer.state.items():
            for name, moment in moments.items():
                if moment.shape == parameter.shape:
                    moments[name] = torch.empty_like(parameter.detach()).copy_(moment)

    def start_from(self, stored: StoredNetwork) -> None:
        """Begin with the weights of a network that was trained before, perhaps on other planes."""
        notes = load_weights(
            self.model,
            weight_tensors(stored.weights),
            planes_from=stored.spec.plane_names,
            planes_to=self.spec.plane_names,
        )
        if self.average is not None:
            self.average.load_state_dict(self.model.state_dict())
        logger.info("the weights are those of %s", stored.path)
        for note in notes:
            logger.info("%s", note)

    def facts(self) -> dict[str, Any]:
        """Sizes, device and versions, for the record of the run."""
        compute = self.compute
        return {
            "parameters": sum(parameter.numel() for parameter in self.model.parameters()),
            "device": str(compute.device),
            "precision": str(compute.autocast_dtype or torch.float32).removeprefix("torch."),
            "compile": compute.compile,
            "threads": compute.threads,
            "minibatch_size": self.minibatch_size,
            "torch": torch.__version__,
        }

    def profiler(self, directory: Path) -> TorchProfiler:
        """A profiler of updates, which writes into `directory`."""
        return TorchProfiler(directory)

    def _learn_epoch(
        self, buffer: ExperienceBuffer, weights: LossWeights, totals: "_Averages"
    ) -> bool:
        """One pass over the rollout; False if it stopped because the policy had moved too far."""
        order = buffer.sample_order(self.random)
        # All ranks take the same number of steps, or some would wait for others forever.
        order = order[: self.ranks.all_min(len(order))]
        start = 0
        while start < len(order):
            indices = order[start : start + self.minibatch_size]
            sums = self._policy_sums(buffer, indices)
            terms, how = self._backward(buffer, indices, weights, sums)
            how = _Gradient(self.ranks.all_min(how))
            if how is _Gradient.NO_MEMORY:
                self._shrink_minibatch()
                continue
            assert terms is not None
            grad_norm = self._step(how)
            totals.add(terms, grad_norm, len(indices))
            start += len(indices)
            target = self.settings.target_kl
            if target is not None and self.ranks.means([float(terms.approx_kl)])[0] > target:
                return False
        return True

    def _policy_sums(
        self, buffer: ExperienceBuffer, indices: npt.NDArray[np.int64]
    ) -> PolicySums | None:
        """Sums over the minibatches of all ranks; None for one rank, which needs no others."""
        if self.ranks.size == 1:
            return None
        learns = buffer.learns_policy.reshape(-1)[indices]
        advantages = buffer.advantages.reshape(-1)[indices][learns].astype(np.float64)
        own = (float(learns.sum()), float(advantages.sum()), float((advantages**2).sum()))
        return PolicySums(*self.ranks.sums(own))

    def _shrink_minibatch(self) -> None:
        """Halve a minibatch that the device's memory could not hold, if it may choose its size."""
        if self.settings.minibatch_size != "auto" or self.minibatch_size <= SMALLEST_MINIBATCH:
            raise self._no_memory()
        self.optimizer.zero_grad(set_to_none=True)
        self.minibatch_size //= 2
        if self.compute.device.type == "cuda":
            torch.cuda.empty_cache()
        logger.warning("out of memory: minibatches are now of %d samples", self.minibatch_size)

    def _no_memory(self) -> KeiseiError:
        return KeiseiError(
            f"{self.compute.device} has no memory for a minibatch of {self.minibatch_size}; "
            "set ppo.minibatch_size to a smaller number or to auto, or use a smaller model"
        )

    def _backward(
        self,
        buffer: ExperienceBuffer,
        indices: npt.NDArray[np.int64],
        weights: LossWeights,
        sums: PolicySums | None,
    ) -> tuple[LossTerms | None, _Gradient]:
        """Compute the gradient of a minibatch. Nothing here waits for other ranks: it may fail."""
        self.optimizer.zero_grad(set_to_none=True)
        try:
            minibatch = self._maker.make(buffer, indices)
            with self.stopwatch:
                with self.compute.autocast():
                    terms = self._loss(minibatch, weights, sums)
                if not bool(torch.isfinite(terms.total)):
                    return terms, _Gradient.NON_FINITE
                self.scaler.scale(terms.total).backward()  # type: ignore[no-untyped-call]
        except torch.OutOfMemoryError:
            return None, _Gradient.NO_MEMORY
        return terms, _Gradient.FINE

    def _step(self, how: _Gradient) -> float:
        """One step of the optimizer, the same in all ranks; returns the norm of the gradient.

        A loss that is no number, of whichever rank, is skipped and counted.
        """
        if how is _Gradient.NON_FINITE:
            self._skip("the loss is no number")
            return float("nan")
        parameters = list(self.model.parameters())
        with self.stopwatch:
            # Before they are unscaled: what overflowed in one rank is then infinite in all of
            # them, and the scalers agree to leave the step out.
            if isinstance(self.ranks, TorchRanks):
                self.ranks.average_gradients(parameters)
            self.scaler.unscale_(self.optimizer)
            grad_norm = float(
                torch.nn.utils.clip_grad_norm_(parameters, self.settings.max_grad_norm)
            )
            if not np.isfinite(grad_norm) and not self.scaler.is_enabled():
                self._skip("a gradient is no number")
                return float("nan")
            try:
                self.scaler.step(self.optimizer)  # by itself skips what overflowed in float16
            except torch.OutOfMemoryError as error:  # too late to be agreed on
                raise self._no_memory() from error
            self.scaler.update()
        self._bad_minibatches = 0
        return grad_norm

    def _loss(
        self, minibatch: Minibatch, weights: LossWeights, sums: PolicySums | None = None
    ) -> LossTerms:
        output = self.model(minibatch.planes, minibatch.legal)
        log_probs = legal_log_probs(output.logits, minibatch.counts)
        ema_kls: Tensor | None = None
        if weights.ema_kl > 0.0 and self.average is not None:
            with torch.no_grad():
                average = self.average(minibatch.planes, minibatch.legal)
                average_log_probs = legal_log_probs(average.logits, minibatch.counts)
            ema_kls = kl_divergence(log_probs, average_log_probs)
        advantages = minibatch.advantages
        if self.settings.normalize_advantages:
            advantages = normalized(advantages, minibatch.learns_policy, sums)
        return ppo_loss(
            log_probs=log_probs.gather(1, minibatch.legal_indices[:, None])[:, 0],
            old_log_probs=minibatch.log_probs,
            advantages=advantages,
            entropies=entropy(log_probs),
            value_losses=self.model.value_loss(output.value, minibatch.returns),
            ema_kls=ema_kls,
            learns_policy=minibatch.learns_policy,
            weights=weights,
            # The mean over ranks of such parts is the mean over all samples.
            number=None if sums is None else max(sums.number, 1.0) / self.ranks.size,
        )

    def _skip(self, reason: str) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        self._bad_minibatches += 1
        logger.warning("minibatch skipped: %s (%d in a row)", reason, self._bad_minibatches)
        if self._bad_minibatches >= self.settings.nan_limit:
            raise TrainingDivergedError(
                f"{reason}, {self._bad_minibatches} minibatches in a row; the last checkpoint is "
                "good. A lower ppo.learning_rate or ppo.max_grad_norm usually helps"
            )

    def _update_average(self) -> None:
        if self.average is None:
            return
        decay = self.settings.ema_decay
        with torch.no_grad():
            for mean, new in zip(self.average.parameters(), self.model.parameters(), strict=True):
                mean.lerp_(new, 1.0 - decay)

    def _first_minibatch_size(self) -> int:
        if self.settings.minibatch_size != "auto":
            return self.settings.minibatch_size
        return AUTO_CPU_MINIBATCH if self.compute.device.type == "cpu" else AUTO_GPU_MINIBATCH


class _Averages:
    """Means of the loss terms over the minibatches of an update."""

    def __init__(self) -> None:
        self.samples = 0
        self._skipped = 0
        self._minibatches = 0
        self._sums: dict[str, float] = {}

    def add(self, terms: LossTerms, grad_norm: float, samples: int) -> None:
        if not np.isfinite(grad_norm):
            self._skipped += 1
            return
        self.samples += samples
        self._minibatches += 1
        for name, value in (
            ("losses/total", terms.total),
            ("losses/policy", terms.policy),
            ("losses/value", terms.value),
            ("losses/entropy", terms.entropy),
            ("losses/ema_kl", terms.ema_kl),
            ("losses/approx_kl", terms.approx_kl),
            ("losses/clip_fraction", terms.clip_fraction),
            ("losses/grad_norm", grad_norm),
        ):
            self._sums[name] = self._sums.get(name, 0.0) + _number(value)

    def means(self) -> dict[str, float]:
        means = {name: total / self._minibatches for name, total in self._sums.items()}
        means["losses/skipped_minibatches"] = float(self._skipped)
        return means


def _number(value: Tensor | float) -> float:
    return value.item() if isinstance(value, Tensor) else value
