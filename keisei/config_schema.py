"""`AppConfig`: every setting of a run, with its default and a one-line description.

This is the only place with defaults. The descriptions are also the help texts of the command line
and the rows of ``docs/configuration.md``. Unknown keys and invalid values are refused.
"""

import re
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from keisei.constants import MAX_PLY_LIMIT
from keisei.errors import KeiseiError
from keisei.run_files import RUNS

MAX_COUNT: Final = 10**9
"""Largest value of counts and intervals; sizes that need memory have lower limits of their own."""

MAX_PLIES_PER_UPDATE: Final = 1 << 30
"""Plies of a rollout, each of which takes 140 bytes."""

MAX_TOWER_WEIGHTS: Final = 1 << 29
"""Weights of a tower's blocks, 2 GiB."""

MAX_TARGETS: Final = 16
"""Moves of a search that the policy learns from: those with most visits, and some with few left
out."""

Positive = Annotated[int, Field(gt=0, le=MAX_COUNT)]
NonNegative = Annotated[int, Field(ge=0, le=MAX_COUNT)]
Threads = Annotated[int, Field(ge=0, le=1024)]
Games = Annotated[int, Field(gt=0, le=100_000)]
Width = Annotated[int, Field(gt=0, le=4096)]
Fraction = Annotated[float, Field(ge=0.0, le=1.0)]
MATE_PLIES = (0, 1, 3, 5)


def _is_mate_length(plies: int) -> int:
    if plies not in MATE_PLIES:
        raise ValueError("should be 0, 1, 3 or 5: a mate ends with a move of the mating side")
    return plies


MatePlies = Annotated[int, AfterValidator(_is_mate_length)]
LayerSize = Annotated[int, Field(gt=0, le=4096, multiple_of=8)]
Text = Annotated[str, Field(pattern=r"^\P{Cc}*$", max_length=4096)]  # no control characters
Shape = Literal["constant", "linear", "cosine"]


class Section(BaseModel):
    """Base of all sections: immutable, without unknown keys."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", validate_default=True, allow_inf_nan=False
    )


class RunConfig(Section):
    """Name, directory and length of a run."""

    name: Text = Field(
        "", description="Name of the run's directory; empty: date and time of the start."
    )
    root: Text = Field(RUNS, description="Directory that holds the runs.")
    seed: Annotated[int, Field(ge=0, lt=2**63)] = Field(
        0, description="Seed of all random numbers of the run."
    )
    start_from: Text = Field(
        "",
        description="Run or checkpoint with the initial weights; empty: random weights.",
    )
    total_timesteps: Annotated[int, Field(gt=0, le=10**15)] = Field(
        5_000_000, description="Length of the run in plies, of all learners together."
    )
    max_minutes: Annotated[float, Field(ge=0.0, le=MAX_COUNT)] = Field(
        0.0,
        description="Time limit in minutes, also for schedules; 0: no limit.",
    )

    @field_validator("name")
    @classmethod
    def _is_a_plain_name(cls, name: str) -> str:
        if any(char in name for char in "/\\:") or name in (".", ".."):
            raise ValueError("must be a plain directory name without / \\ or :")
        return name


class EnvConfig(Section):
    """The self-play games."""

    input_features: Text = Field(
        "core46", description="Set of input planes: core46, core46+check ... core46+all."
    )
    num_games: Annotated[int, Field(gt=0, le=1 << 20)] = Field(
        512, description="Games that each learner plays in parallel."
    )
    ply_limit: Annotated[int, Field(gt=0, le=MAX_PLY_LIMIT)] = Field(
        512, description="Ply at which a game is a draw; such draws are counted separately."
    )
    opening_plies: Annotated[int, Field(ge=0, le=MAX_PLY_LIMIT)] = Field(
        6, description="Random legal plies at the start of each self-play game."
    )
    stagger_plies: Annotated[int, Field(ge=0, le=MAX_PLY_LIMIT)] = Field(
        0,
        description="Largest number of random plies by which the first games are apart; 0: none.",
    )
    declaration: Literal["27", "24", "off"] = Field(
        "27", description="Entering-king rule: 27 or 24 points to win by declaration, or off."
    )
    threads: Threads = Field(
        0, description="Threads that step the games of the learner, or of each worker; 0: auto."
    )

    @field_validator("input_features")
    @classmethod
    def _exists(cls, name: str) -> str:
        from keisei.shogi.features import feature_spec

        try:
            return feature_spec(name).name
        except KeiseiError as error:
            raise ValueError(str(error)) from None


class ModelConfig(Section):
    """The network."""

    type: Text = Field(
        "sparse",
        description="Network type: sparse (CPU), resnet or transformer (torch), or a plug-in's.",
    )
    accumulators: LayerSize = Field(
        128, description="sparse: sums of rows that describe a position."
    )
    hidden: LayerSize = Field(32, description="sparse: hidden units behind the accumulators.")
    context: LayerSize = Field(
        32, description="sparse: numbers by which a position and a move meet in the policy."
    )
    position_rows: Text = Field(
        "all", description="sparse: rows of positions: all, all-threats, pieces+hands ..."
    )
    move_rows: Text = Field(
        "all", description="sparse: rows of moves: all, all-exchange, target+capture ..."
    )
    tower_depth: Annotated[int, Field(gt=0, le=256)] = Field(
        2, description="Residual blocks (or transformer layers)."
    )
    tower_width: Width = Field(64, description="Channels of the tower.")
    se_ratio: Fraction = Field(
        0.25, description="Squeeze-and-excitation: hidden width over tower width; 0: off."
    )
    activation: Literal["relu", "silu", "gelu", "mish"] = Field(
        "relu", description="Activation function of the tower."
    )
    policy_head: Literal["from_to", "flat"] = Field(
        "from_to", description="Policy head: from_to (query of origin . key of target) or flat."
    )
    policy_width: Width = Field(
        32, description="Width of the from_to head's queries and keys, or of the flat head's input."
    )
    value_head: Literal["tanh", "wdl"] = Field(
        "tanh", description="Value head: a scalar (tanh) or win, draw and loss (wdl)."
    )
    value_width: Width = Field(64, description="Hidden units of the value head.")

    @field_validator("position_rows", "move_rows")
    @classmethod
    def _rows_exist(cls, name: str, info: ValidationInfo) -> str:
        from keisei.shogi.row_groups import row_spec

        try:
            return row_spec("position" if info.field_name == "position_rows" else "move", name).name
        except KeiseiError as error:
            raise ValueError(str(error)) from None

    @model_validator(mode="after")
    def _fits_into_memory(self) -> Self:
        # Two 3x3 convolutions per block, or the projections of a transformer's layer.
        weights = 18 * self.tower_depth * self.tower_width**2
        if weights > MAX_TOWER_WEIGHTS:
            raise ValueError(
                f"{self.tower_depth} blocks of {self.tower_width} channels have {weights:,} "
                f"weights; at most {MAX_TOWER_WEIGHTS:,} are allowed"
            )
        return self

    def tower_settings(self) -> dict[str, Any]:
        """Return the settings that models of towers are built with."""
        return self.model_dump(exclude={"type", *SPARSE_SETTINGS})


SPARSE_SETTINGS: Final = ("accumulators", "hidden", "context", "position_rows", "move_rows")
"""Settings of the model that only the sparse network reads."""


class SelfPlayConfig(Section):
    """Collection of experience by self-play."""

    rollout_plies: Annotated[int, Field(gt=0, le=1 << 16)] = Field(
        64, description="Plies per game between two updates."
    )
    mate_plies: MatePlies = Field(
        3,
        description="Mates of up to this many plies are played by rule; 0: off.",
    )
    learn_mates: bool = Field(
        False, description="The policy learns the mates that are played by rule, too."
    )
    simulations: Annotated[int, Field(ge=0, le=10_000)] = Field(
        0,
        description="Expert iteration: simulations per move, which the policy imitates; 0: PPO.",
    )
    search_temperature: Annotated[float, Field(gt=0.0)] = Field(
        0.5,
        description="Expert iteration: moves are drawn and learned by visits to the power 1/this.",
    )
    pool_share: Fraction = Field(
        0.0, description="Share of the games played against earlier networks of the run."
    )
    pool_size: Annotated[int, Field(gt=0, le=1000)] = Field(
        8, description="Number of earlier networks kept as opponents."
    )
    pool_interval: Positive = Field(
        10, description="Updates between additions to the pool of earlier networks."
    )
    shaping: Annotated[float, Field(ge=0.0)] = Field(
        0.0, description="Initial weight of potential-based material shaping; 0: off."
    )
    shaping_end: Fraction = Field(
        0.5, description="Fraction of the run at which shaping has faded to zero."
    )

    @property
    def num_targets(self) -> int:
        """Moves of a search that are kept for the policy to learn, at most."""
        return min(self.simulations, MAX_TARGETS)


class PPOConfig(Section):
    """The PPO update."""

    epochs: Positive = Field(1, description="Passes over each rollout.")
    learn_share: Annotated[float, Field(gt=0.0, le=1.0)] = Field(
        1.0,
        description="Fraction of each rollout to learn from: plies with the largest advantages.",
    )
    minibatch_size: Annotated[int, Field(gt=0, le=1 << 24)] | Literal["auto"] = Field(
        2048,
        description="Samples per minibatch; auto: grows and shrinks with speed and free memory.",
    )
    learning_rate: Annotated[float, Field(gt=0.0)] = Field(
        2e-3, description="Initial learning rate, after warm-up."
    )
    learning_rate_end: Annotated[float, Field(ge=0.0)] = Field(
        1e-4, description="Final learning rate."
    )
    learning_rate_schedule: Shape = Field("linear", description="Schedule of the learning rate.")
    warmup: Fraction = Field(
        0.0, description="Fraction of the run over which the learning rate rises from zero."
    )
    entropy: Annotated[float, Field(ge=0.0)] = Field(
        0.08, description="Initial weight of the entropy bonus."
    )
    entropy_end: Annotated[float, Field(ge=0.0)] = Field(
        0.04, description="Final weight of the entropy bonus."
    )
    entropy_schedule: Shape = Field("linear", description="Schedule of the entropy weight.")
    position_rate: Annotated[float, Field(gt=0.0)] = Field(
        0.35, description="sparse: learning rate of the position table, relative to the others."
    )
    move_rate: Annotated[float, Field(gt=0.0)] = Field(
        0.5, description="sparse: learning rate of the move table, relative to the others."
    )
    clip_range: Annotated[float, Field(gt=0.0, lt=1.0)] = Field(
        0.2, description="Clip range of the probability ratio."
    )
    dual_clip: Annotated[float, Field(gt=1.0)] = Field(
        3.0, description="Probability ratio beyond which bad moves are not pushed further down."
    )
    advantage_clip: Annotated[float, Field(gt=0.0)] = Field(
        5.0, description="Largest normalized advantage; larger ones are clipped."
    )
    value_weight: Annotated[float, Field(ge=0.0)] = Field(
        2.0, description="Weight of the value loss."
    )
    gamma: Annotated[float, Field(gt=0.0, le=1.0)] = Field(
        0.99, description="Discount factor per ply."
    )
    gae_lambda: Fraction = Field(
        0.6, description="Initial lambda of generalised advantage estimation."
    )
    gae_lambda_end: Fraction = Field(
        0.92, description="Final lambda of generalised advantage estimation; linear in between."
    )
    value_lambda: Fraction | None = Field(
        None, description="Lambda of what the value learns; none: that of the advantages."
    )
    normalize_advantages: bool = Field(
        True, description="Normalize the advantages of each minibatch to mean 0, deviation 1."
    )
    max_grad_norm: Annotated[float, Field(gt=0.0)] = Field(
        0.5, description="Maximum norm of the gradients, beyond which they are clipped."
    )
    target_kl: Annotated[float, Field(gt=0.0)] | None = Field(
        None, description="Approximate KL divergence at which an update stops early; none: never."
    )
    beta2: Annotated[float, Field(gt=0.0, lt=1.0)] = Field(
        0.99, description="Decay of Adam's average of squared gradients."
    )
    weight_decay: Annotated[float, Field(ge=0.0)] = Field(0.0, description="Weight decay of AdamW.")
    mirror: bool = Field(
        False, description="Mirror each sample left to right with probability 0.5."
    )
    ema_decay: Annotated[float, Field(ge=0.0, lt=1.0)] = Field(
        0.0, description="Decay per update of the weight average used for play and export; 0: off."
    )
    ema_kl: Annotated[float, Field(ge=0.0)] = Field(
        0.0, description="Weight of the KL divergence to the policy of the averaged weights."
    )
    nan_limit: Positive = Field(
        10,
        description="Consecutive minibatches with a NaN or infinite loss before the run stops.",
    )

    @model_validator(mode="after")
    def _average_exists(self) -> Self:
        if self.ema_kl > 0.0 and self.ema_decay == 0.0:
            raise ValueError("ema_kl needs averaged weights: set ema_decay, for example to 0.99")
        return self


class ParallelConfig(Section):
    """Workers for self-play, and distributed training."""

    ddp: bool = Field(
        False, description="Distributed training under torchrun; learners average their gradients."
    )
    backend: Literal["processes", "ray"] = Field(
        "processes", description="Workers: processes on this machine, or ray for a cluster."
    )
    num_workers: Annotated[int, Field(ge=0, le=4096)] | Literal["auto"] = Field(
        0, description="Workers; 0: the learner plays itself (ray: as auto); auto: by cores."
    )
    inference: Literal["auto", "workers", "server"] = Field(
        "auto",
        description="Inference in workers, or in a shared server; auto: server on a GPU.",
    )
    worker_threads: Threads = Field(
        0, description="Threads of the network per worker; 0: one, the most efficient."
    )
    max_lag: Annotated[int, Field(ge=0, le=16)] = Field(
        1, description="Maximum age of the workers' weights in updates; 0: workers wait."
    )
    max_failures: NonNegative = Field(
        5, description="Consecutive worker failures that are tolerated; then see fallback."
    )
    fallback: Literal["stop", "learner"] = Field(
        "stop",
        description="If workers don't start or keep failing: stop, or the learner plays itself.",
    )
    hang_seconds: Annotated[float, Field(gt=0.0, le=1e6)] = Field(
        120.0, description="Seconds without a heartbeat after which a worker is replaced."
    )
    ray_address: Text = Field(
        "",
        description="Ray cluster to join: auto, or (with your consent) host:port; empty: our own.",
    )
    compression: Literal["off", "gzip", "bf16", "bf16+gzip"] = Field(
        "off",
        description="Compression of the weights sent to Ray workers; bf16 rounds to half size.",
    )

    @model_validator(mode="after")
    def _settings_go_together(self) -> Self:
        if self.backend == "ray" and self.inference == "server":
            raise ValueError(
                "inference=server needs workers on one machine; it can't be used with backend=ray"
            )
        if self.backend != "ray" and self.ray_address:
            raise ValueError("ray_address needs backend=ray")
        return self


class DeviceConfig(Section):
    """Device and precision of the network."""

    device: Text = Field(
        "auto", description="Device: cpu, cuda, cuda:1, mps; auto: the best available."
    )
    mixed_precision: Literal["off", "bf16", "fp16", "auto"] = Field(
        "off",
        description="Autocast: off, bf16, fp16; auto: the fastest that is safe on this machine.",
    )
    compile: Literal["off", "on", "auto"] = Field(
        "off", description="torch.compile: off, on; auto: on if measured to be faster."
    )
    threads: Threads = Field(0, description="Threads of the network on the CPU; 0: one per core.")
    deterministic: bool = Field(
        True, description="Use deterministic algorithms of torch, so that runs can be repeated."
    )

    @field_validator("device")
    @classmethod
    def _is_a_device(cls, device: str) -> str:
        # Availability is checked when training starts. Torch takes device numbers modulo 256.
        if not re.fullmatch(r"auto|cpu|mps|cuda(:[1-9]?[0-9])?", device):
            raise ValueError("should be auto, cpu, mps, cuda or a GPU's number as in cuda:1")
        return device


class EvaluationConfig(Section):
    """Matches that measure the strength during training."""

    interval: NonNegative = Field(
        25, description="Updates between evaluations; 0: only at the end."
    )
    background: Literal["auto", "on", "off"] = Field(
        "auto",
        description="Evaluate in a background process; auto: with a free core or a GPU.",
    )
    games: Games = Field(128, description="Games against each opponent, with alternating colours.")
    final_games: Games = Field(
        400, description="Games against each opponent at the end of the run."
    )
    opponents: tuple[Text, ...] = Field(
        ("random", "greedy", "alphabeta:2", "alphabeta:3"),
        max_length=100,
        description="Opponents, as player specs; engines (usi:...) in files need your consent.",
    )
    within: Annotated[float, Field(ge=0.0)] = Field(
        60.0,
        description="More games are played until the Elo is known within this; 0: no Elo.",
    )
    final_within: Annotated[float, Field(ge=0.0)] = Field(
        40.0, description="The same at the end of the run."
    )
    max_games: Games = Field(
        5000, description="Games for the Elo beyond those against the opponents, at most."
    )
    ply_limit: Annotated[int, Field(gt=0, le=MAX_PLY_LIMIT)] = Field(
        512, description="Ply at which a game is a draw; wins take longer than in self-play."
    )
    opening_plies: Annotated[int, Field(ge=0, le=MAX_PLY_LIMIT)] = Field(
        4, description="Random legal plies at the start of each game."
    )
    temperature: Annotated[float, Field(ge=0.0)] = Field(
        0.25, description="Temperature of the network's moves; 0: the most likely move, more draws."
    )
    mate_plies: MatePlies = Field(
        3, description="Mates of up to this many plies are played by rule; 0: off."
    )


class CheckpointConfig(Section):
    """Checkpoints of the run's state."""

    interval: NonNegative = Field(
        10, description="Updates between checkpoints; 0: only at the end, which is always saved."
    )
    keep: Positive = Field(3, description="Number of newest checkpoints that are kept.")
    milestones: tuple[Annotated[float, Field(gt=0.0)], ...] = Field(
        (),
        max_length=1000,
        description="Minutes of training after which the network is kept for good.",
    )


class LoggingConfig(Section):
    """Display, trackers and plug-ins."""

    display: Literal["auto", "live", "plain", "off"] = Field(
        "auto", description="Terminal output: live, plain lines or off; auto: live on a terminal."
    )
    tensorboard: bool = Field(True, description="Write TensorBoard events.")
    sample_games: Annotated[int, Field(ge=0, le=10_000)] = Field(
        4, description="Games written as KIF and CSA at each evaluation."
    )
    wandb: Literal["off", "offline", "online"] = Field(
        "off", description="Weights & Biases (extra wandb): off, offline or online."
    )
    wandb_project: Text = Field("keisei", description="Project at Weights & Biases.")
    wandb_timeout: Annotated[float, Field(gt=0.0, le=1e6)] = Field(
        60.0, description="Timeout in seconds for Weights & Biases at the end of the run."
    )
    plugins: tuple[Text, ...] = Field(
        (),
        max_length=100,
        description="Callbacks to load, by entry point name in the group keisei.callbacks.",
    )


class AppConfig(Section):
    """All settings of a run."""

    run: RunConfig = Field(default_factory=RunConfig, description=RunConfig.__doc__)
    env: EnvConfig = Field(default_factory=EnvConfig, description=EnvConfig.__doc__)
    model: ModelConfig = Field(default_factory=ModelConfig, description=ModelConfig.__doc__)
    selfplay: SelfPlayConfig = Field(
        default_factory=SelfPlayConfig, description=SelfPlayConfig.__doc__
    )
    ppo: PPOConfig = Field(default_factory=PPOConfig, description=PPOConfig.__doc__)
    parallel: ParallelConfig = Field(
        default_factory=ParallelConfig, description=ParallelConfig.__doc__
    )
    device: DeviceConfig = Field(default_factory=DeviceConfig, description=DeviceConfig.__doc__)
    evaluation: EvaluationConfig = Field(
        default_factory=EvaluationConfig, description=EvaluationConfig.__doc__
    )
    checkpoint: CheckpointConfig = Field(
        default_factory=CheckpointConfig, description=CheckpointConfig.__doc__
    )
    logging: LoggingConfig = Field(default_factory=LoggingConfig, description=LoggingConfig.__doc__)

    @model_validator(mode="after")
    def _rollout_fits_into_memory(self) -> Self:
        plies = self.env.num_games * self.selfplay.rollout_plies
        if plies > MAX_PLIES_PER_UPDATE:
            raise ValueError(
                f"env.num_games times selfplay.rollout_plies is {plies:,} plies for an update; "
                f"at most {MAX_PLIES_PER_UPDATE:,} are allowed"
            )
        return self

    @model_validator(mode="after")
    def _learns_one_way(self) -> Self:
        if self.selfplay.simulations and self.ppo.target_kl is not None:
            raise ValueError(
                "ppo.target_kl belongs to PPO, and with selfplay.simulations the policy learns "
                "from a search: set one of the two"
            )
        return self
