"""`SparseLearner`: trains a sparse network by PPO, with kernels on all cores and without torch.

The samples of a minibatch are divided evenly among the threads, each of which adds up a gradient of
its own; these are added in a fixed order. So a run can be repeated bit by bit with the same number
of threads, whatever else the machine does.
"""

import cProfile
import io
import logging
import math
import pstats
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from keisei.config_schema import AppConfig
from keisei.constants import MAX_LEGAL_MOVES
from keisei.errors import KeiseiError, WeightsError
from keisei.network.loading import StoredNetwork
from keisei.network.predictor import weights_checksum
from keisei.network.sparse.adam import (
    ADAM_EPSILON,
    BETA1,
    AdamSettings,
    adam_step,
    clear_gradient,
    reduce_gradients,
)
from keisei.network.sparse.forward import PluginRows, SparseWeights
from keisei.network.sparse.gradient import (
    APPROX_KL,
    CLIPPED,
    EMA_KL,
    ENTROPY,
    NEGLIGIBLE,
    NUM_SUMS,
    POLICY_LOSS,
    VALUE_LOSS,
    Derivatives,
    Gradient,
    LossSettings,
    Samples,
    add_gradient,
    zeros_like,
)
from keisei.network.sparse.row_store import NOTHING_KEPT
from keisei.network.sparse.sparse_network import (
    RowStore,
    SparseNetwork,
    require_cpu,
    require_same_shapes,
)
from keisei.ppo.buffer import ExperienceBuffer
from keisei.ppo.learner import LearnSettings, Ranks, learner_threads
from keisei.ppo.ppo_learner import BackwardResult, LossFigures, PolicySamples, PPOLearner
from keisei.shogi.features import feature_spec
from keisei.shogi.packed import Positions, legal_from_packed, padded_width
from keisei.shogi.position import Records, new_positions
from keisei.shogi.threads import RangePool
from keisei.system import write_atomically

logger = logging.getLogger(__name__)

AUTO_MINIBATCH: Final = 2048
MIN_AUTO_MINIBATCH: Final = 512
MAX_AUTO_MINIBATCH: Final = 8_192
PROFILE: Final = "summary.txt"
SHOWN_ROWS: Final = 30


def make_learner(
    config: AppConfig, *, seed: int, random: np.random.Generator, ranks: Ranks
) -> "SparseLearner":
    """Build the learner of a sparse network, with the cores that its workers leave to it.

    Args:
        config: the settings of the run.
        seed: of the initial weights.
        random: decides the order of samples.
        ranks: all learners, of which this is one.
    """
    require_cpu(config.device)
    network = SparseNetwork.new(
        config.model,
        feature_spec(config.env.input_features),
        threads=learner_threads(config, ranks, on_cpu=True),
        seed=seed,
        ply_limit=config.env.ply_limit,
    )
    logger.info("learning on the CPU in float32 with %d threads", network.threads)
    return SparseLearner(config, network, random, ranks)


class SparseLearner(PPOLearner):
    """A sparse network, its optimizer, and the moving average of its weights."""

    def __init__(
        self,
        config: AppConfig,
        network: SparseNetwork,
        random: np.random.Generator,
        ranks: Ranks | None = None,
        *,
        negligible: float = NEGLIGIBLE,
    ) -> None:
        """Make a learner.

        Args:
            config: the settings of the run.
            network: the network, with the weights to start from.
            random: decides the order of samples.
            ranks: all learners, of which this is one.
            negligible: derivatives of logits that are left out; see `gradient.NEGLIGIBLE`.
        """
        super().__init__(config.ppo, random, ranks or Ranks())
        self.network = network
        network.stopwatch = self.stopwatch
        self._begin_minibatches(
            AUTO_MINIBATCH, smallest=MIN_AUTO_MINIBATCH, largest=MAX_AUTO_MINIBATCH
        )
        self.average: SparseNetwork | None = network.copy() if config.ppo.ema_decay > 0.0 else None
        """Exponential moving average of the weights, if ``ppo.ema_decay`` is above 0."""

        self.steps = 0
        """Steps of the optimizer so far."""

        self._means = zeros_like(network.arrays)
        self._squares = zeros_like(network.arrays)
        self._negligible = negligible
        self._pool = RangePool(network.threads)
        self._work = [network.new_workspace() for _ in range(network.threads)]
        self._scratch = [Derivatives.of(work) for work in self._work]
        self._gradients = tuple(Gradient.like(network.arrays) for _ in self._work)

    @property
    def evaluation_network(self) -> SparseNetwork:
        """The network to evaluate: with the averaged weights if there are any."""
        return self.network if self.average is None else self.average

    @property
    def fingerprint(self) -> int:
        """CRC-32 checksum of the weights."""
        return weights_checksum(self.network.weights())

    @property
    def gradient(self) -> SparseWeights:
        """The gradient of the last backward pass of the first thread, until the step is taken."""
        return self._gradients[0].values

    def join_ranks(self) -> None:
        """Give all ranks the weights of the first rank.

        Raises:
            KeiseiError: The ranks have minibatches of different sizes.
        """
        if not self.ranks.is_same(self.minibatch_size):
            raise KeiseiError(
                "the learners have minibatches of different sizes: set ppo.minibatch_size"
            )
        self.ranks.broadcast_arrays(list(self.network.arrays))
        if self.average is not None:
            self.ranks.broadcast_arrays(list(self.average.arrays))

    def stay_together(self) -> None:
        """Give all ranks the weights of the first rank again if they have diverged.

        Processors with different vector units round sums differently, and the differences add up.
        """
        if self.ranks.size > 1 and not self.ranks.is_same(self.fingerprint):
            logger.warning("the learners' weights have diverged: all take those of the first")
            self.join_ranks()

    def state(self) -> dict[str, Any]:
        """Everything that learning depends on, as plain values and arrays, for a checkpoint.

        The arrays are the learner's own: copy them to keep them.
        """
        state: dict[str, Any] = {
            "model": dict(self.network.weights()),
            "optimizer": {
                "means": self._means._asdict(),
                "squares": self._squares._asdict(),
                "steps": self.steps,
            },
            "minibatch_size": self.minibatch_size,
            "bad_minibatches": self.bad_minibatches,
        }
        if self.average is not None:
            state["ema"] = dict(self.average.weights())
        return state

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned.

        Raises:
            KeiseiError: The state belongs to another network.
        """
        optimizer = state["optimizer"]
        try:
            require_same_shapes(self.network.weights(), state["model"])
            require_same_shapes(self._means._asdict(), optimizer["means"])
            require_same_shapes(self._squares._asdict(), optimizer["squares"])
        except (WeightsError, KeyError) as error:
            raise KeiseiError(
                "the network of the checkpoint is not the one of the settings; a run keeps its "
                "network. To continue with other settings, start a new run with run.start_from "
                "set to this one"
            ) from error
        self.network.load_weights(state["model"])
        for moments, saved in ((self._means, "means"), (self._squares, "squares")):
            for name, array in moments._asdict().items():
                array[...] = optimizer[saved][name]
        self.steps = int(optimizer["steps"])
        self._restore_counts(state)
        if self.average is not None:  # its decay may have been set just now
            self.average.load_weights(state.get("ema", state["model"]))

    def start_from(self, stored: StoredNetwork) -> None:
        """Start with the weights of a trained network of the same kind and size.

        Raises:
            WeightsError: They do not fit.
        """
        self.network.load_weights(stored.weights)
        if self.average is not None:
            self.average.load_weights(stored.weights)
        logger.info("starting with the weights of %s", stored.path)

    def prepare(self, buffer: ExperienceBuffer) -> None:
        """Let self-play keep the rows that it writes in `buffer`."""
        if not self.settings.mirror:  # which changes the order of the moves, so that sums differ
            buffer.row_store = RowStore(self.network, len(buffer))

    def facts(self) -> dict[str, Any]:
        """Sizes and threads, for the record of the run."""
        return {
            "parameters": sum(array.size for array in self.network.arrays),
            "device": "cpu",
            "precision": "float32",
            "compile": "numba",
            "threads": self.network.threads,
            "minibatch_size": self.minibatch_size,
            "position_rows": self.network.position_spec.num_rows,
            "move_rows": self.network.move_spec.num_rows,
        }

    def profiler(self, directory: Path) -> "PythonProfiler":
        """Make a profiler of updates that writes into `directory`."""
        return PythonProfiler(directory)

    def _backward(
        self,
        buffer: ExperienceBuffer,
        indices: npt.NDArray[np.int64],
        policy: PolicySamples,
        settings: LearnSettings,
    ) -> tuple[LossFigures, BackwardResult]:
        """Compute the gradient of a minibatch; see `PPOLearner`."""
        samples = Samples(
            indices,
            policy.advantages,
            buffer.packed.reshape(-1),
            buffer.actions.reshape(-1),
            buffer.log_probs.reshape(-1),
            buffer.returns.reshape(-1),
            buffer.learns_policy.reshape(-1),
            buffer.target_actions.reshape(len(buffer), buffer.targets),
            buffer.target_probs.reshape(len(buffer), buffer.targets),
            self._plugin_rows(buffer.packed.reshape(-1), indices),
            buffer.row_store.rows if buffer.row_store else NOTHING_KEPT,
        )
        loss = LossSettings(
            clip_range=self.settings.clip_range,
            dual_clip=self.settings.dual_clip,
            policy_scale=1.0 / policy.divisor,
            value_scale=self.settings.value_weight / len(indices),
            entropy_weight=settings.entropy_weight,
            ema_kl_weight=self.settings.ema_kl if self.average is not None else 0.0,
            negligible=self._negligible,
        )
        with self.stopwatch:
            self._pool.run_each(self._add_gradient, samples, loss)
        figures = self._figures(loss, len(indices))
        is_finite = math.isfinite(figures.total)
        return figures, BackwardResult.OK if is_finite else BackwardResult.NON_FINITE

    def _plugin_rows(self, packed: Records, indices: npt.NDArray[np.int64]) -> PluginRows:
        """Rows that plug-ins write for a minibatch; they need its legal lists, kernels do not."""
        batch = len(indices)
        network = self.network
        if not (network.position_spec.plugins or network.move_spec.plugins):
            return PluginRows(
                np.zeros((batch, 0), dtype=np.int32), np.zeros((batch, 0, 0), dtype=np.int32)
            )
        minibatch = packed[indices]
        legal = np.zeros((batch, MAX_LEGAL_MOVES), dtype=np.uint16)
        counts = np.zeros(batch, dtype=np.int32)
        legal_from_packed(minibatch, legal, counts, new_positions(2), 0, batch)
        width = padded_width(counts, MAX_LEGAL_MOVES)
        return network.plugin_rows(Positions(minibatch, legal[:, :width], counts))

    def _add_gradient(self, samples: Samples, loss: LossSettings, part: int, parts: int) -> None:
        """Add up the gradient of one share of the samples, in this thread."""
        number = len(samples.indices)
        add_gradient(
            self.network.arrays,
            self.evaluation_network.arrays,
            self.network.rows,
            self._work[part],
            self._scratch[part],
            self._gradients[part],
            samples,
            loss,
            number * part // parts,
            number * (part + 1) // parts,
        )

    def _figures(self, loss: LossSettings, samples: int) -> LossFigures:
        """Take the sums of all threads and return the loss."""
        sums = np.zeros(NUM_SUMS)
        for gradient in self._gradients:
            sums += gradient.sums
            gradient.sums[:] = 0.0
        policy = float(sums[POLICY_LOSS]) * loss.policy_scale
        value = float(sums[VALUE_LOSS]) / samples
        entropy = float(sums[ENTROPY]) * loss.policy_scale
        ema_kl = float(sums[EMA_KL]) * loss.policy_scale
        total = (
            policy
            + loss.value_scale * float(sums[VALUE_LOSS])
            - loss.entropy_weight * entropy
            + loss.ema_kl_weight * ema_kl
        )
        return LossFigures(
            total=total,
            policy=policy,
            value=value,
            entropy=entropy,
            ema_kl=ema_kl,
            approx_kl=float(sums[APPROX_KL]) * loss.policy_scale,
            clip_fraction=float(sums[CLIPPED]) * loss.policy_scale,
        )

    def reduce_gradient(self) -> float:
        """Add up the gradients of all threads and ranks in the first thread's; return its norm."""
        squares = np.zeros(len(self._gradients))
        self._pool.run_each(reduce_gradients, self._gradients, squares)
        if self.ranks.size > 1:
            total = self._gradients[0]
            self.ranks.max_arrays([total.position_marks, total.move_marks])
            self.ranks.average_arrays(list(total.values))
            self._pool.run_each(reduce_gradients, self._gradients[:1], squares)
        return math.sqrt(float(squares.sum()))

    def _step(self, settings: LearnSettings) -> float:
        """Take one step of Adam; see `PPOLearner`."""
        with self.stopwatch:
            norm = self.reduce_gradient()
            if not math.isfinite(norm):
                return norm
            self.steps += 1
            beta2 = self.settings.beta2
            correction = math.sqrt(1.0 - beta2**self.steps) / (1.0 - BETA1**self.steps)
            rate = settings.learning_rate * correction
            adam = AdamSettings(
                rate=rate,
                position_rate=rate * self.settings.position_rate,
                move_rate=rate * self.settings.move_rate,
                scale=min(1.0, self.settings.max_grad_norm / (norm + 1e-9)),
                beta2=beta2,
                epsilon=ADAM_EPSILON,
                decay=self.settings.weight_decay * settings.learning_rate,
            )
            self._pool.run_each(
                adam_step,
                self.network.arrays,
                self._gradients[0],
                self._means,
                self._squares,
                adam,
            )
        return norm

    def _drop_gradient(self) -> None:
        for gradient in self._gradients:
            clear_gradient(gradient)

    def _free_memory(self) -> float:
        return 1.0  # as good as: its memory does not depend on the minibatch

    def _out_of_memory(self) -> KeiseiError:
        raise AssertionError("the memory of a sparse network does not depend on its minibatch")

    def _update_average(self) -> None:
        if self.average is None:
            return
        share = np.float32(1.0 - self.settings.ema_decay)
        for average, new in zip(self.average.arrays, self.network.arrays, strict=True):
            average[...] += share * (new - average)


class PythonProfiler:
    """Records the second update with cProfile and writes a table of the slowest functions."""

    def __init__(self, directory: Path) -> None:
        """Prepare to write into `directory`, which need not exist."""
        self._directory = directory
        self._profile = cProfile.Profile()
        self._updates = 0

    def start(self) -> None:
        """Start before the first update, which is slower than those that follow."""

    def step(self) -> None:
        """Mark the end of an update."""
        self._updates += 1
        if self._updates == 1:
            self._profile.enable()
        elif self._updates == 2:
            self.stop()
            text = io.StringIO()
            pstats.Stats(self._profile, stream=text).sort_stats("tottime").print_stats(SHOWN_ROWS)
            self._directory.mkdir(parents=True, exist_ok=True)
            write_atomically(self._directory / PROFILE, text.getvalue().encode())
            logger.info("profile of an update: %s", self._directory / PROFILE)

    def stop(self) -> None:
        """Stop, whether anything was recorded or not."""
        self._profile.disable()
