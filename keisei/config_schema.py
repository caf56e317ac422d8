"""`AppConfig`: every setting of a run, its default and its one-line explanation.

This is the only place with defaults. The descriptions are also the help texts of the command line
and the lines of ``docs/configuration.md``. Unknown keys and wrong values are refused.
"""

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator

from keisei.constants import MAX_PLY_LIMIT
from keisei.errors import KeiseiError
from keisei.run_files import RUNS

Positive = Annotated[int, Field(gt=0)]
NonNegative = Annotated[int, Field(ge=0)]
Fraction = Annotated[float, Field(ge=0.0, le=1.0)]
MATE_PLIES = (0, 1, 3, 5)


def _is_a_mate(plies: int) -> int:
    if plies not in MATE_PLIES:
        raise ValueError("should be 0, 1, 3 or 5: a mate ends with a move of the side that mates")
    return plies


MatePlies = Annotated[int, AfterValidator(_is_a_mate)]
Text = Annotated[str, Field(pattern=r"^\P{Cc}*$")]  # no control characters
Shape = Literal["constant", "linear", "cosine"]


class Section(BaseModel):
    """What all sections have in common: fixed once made, no unknown keys."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", validate_default=True, allow_inf_nan=False
    )


class RunConfig(Section):
    """Where a run is kept, how long it goes on."""

    name: Text = Field(
        "", description="Name of the run's directory; empty: the date and time of the start."
    )
    root: Text = Field(RUNS, description="Directory that holds the runs.")
    seed: NonNegative = Field(0, description="Seed of everything random in the run.")
    start_from: Text = Field(
        "",
        description="Run or checkpoint whose weights the network starts with; empty: from nothing.",
    )
    total_timesteps: Positive = Field(
        1_000_000, description="Plies, of all learners, to play and learn from before the run ends."
    )
    max_minutes: Annotated[float, Field(ge=0.0)] = Field(
        0.0,
        description="Minutes after which run and schedules end at the latest; 0: no limit.",
    )

    @field_validator("name")
    @classmethod
    def _is_a_plain_name(cls, name: str) -> str:
        if any(sign in name for sign in "/\\:") or name in (".", ".."):
            raise ValueError("must be a plain directory name without / \\ or :")
        return name


class EnvConfig(Section):
    """The games that are played."""

    input_features: Text = Field(
        "core46", description="Observation planes by name: core46, core46+check ... core46+all."
    )
    num_games: Positive = Field(256, description="Games that each learner plays in lockstep.")
    ply_limit: Annotated[int, Field(gt=0, le=MAX_PLY_LIMIT)] = Field(
        256, description="Ply at which a game is a draw; such draws are counted apart."
    )
    opening_plies: NonNegative = Field(
        0, description="Random legal plies before each self-play game."
    )
    declaration: Literal["27", "24", "off"] = Field(
        "27", description="Rule by which an entered king wins at once: 27 or 24 points, or off."
    )
    threads: NonNegative = Field(0, description="Threads that step the games; 0: chosen by itself.")

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
        "resnet", description="Kind of network: resnet, transformer, or a plug-in's."
    )
    tower_depth: Positive = Field(2, description="Residual blocks (or transformer layers).")
    tower_width: Positive = Field(64, description="Channels of the tower.")
    se_ratio: Fraction = Field(
        0.25, description="Squeeze-and-excitation: hidden width over tower width; 0: none."
    )
    activation: Literal["relu", "silu", "gelu", "mish"] = Field(
        "relu", description="Activation function of the tower."
    )
    policy_head: Literal["from_to", "flat"] = Field(
        "from_to", description="Policy head: from_to (query of origin . key of target) or flat."
    )
    policy_width: Positive = Field(
        32, description="Width of the from-to head's queries and keys, or of the flat head's input."
    )
    value_head: Literal["tanh", "wdl"] = Field(
        "tanh", description="Value head: one number (tanh) or win, draw and loss (wdl)."
    )
    value_width: Positive = Field(64, description="Hidden units of the value head.")


class SelfPlayConfig(Section):
    """How experience is gathered."""

    rollout_plies: Positive = Field(
        64, description="Plies played in each game between two updates."
    )
    mate_plies: MatePlies = Field(
        1,
        description="Mates of so many plies are played by rule and not learned; 0: no such rule.",
    )
    pool_share: Fraction = Field(
        0.0, description="Share of the games that are played against earlier selves."
    )
    pool_size: Positive = Field(8, description="Earlier selves that are kept as opponents.")
    pool_interval: Positive = Field(
        10, description="Updates after which the present self joins the pool."
    )
    shaping: Annotated[float, Field(ge=0.0)] = Field(
        0.0, description="Weight of potential-based material shaping at the start; 0: none."
    )
    shaping_end: Fraction = Field(
        0.5, description="Fraction of the run at which shaping has faded to zero."
    )


class PPOConfig(Section):
    """How the network learns from experience."""

    epochs: Positive = Field(1, description="Passes over each rollout.")
    minibatch_size: Positive | Literal["auto"] = Field(
        512,
        description="Samples of a minibatch; auto: many, and half as many if memory runs out.",
    )
    learning_rate: Annotated[float, Field(gt=0.0)] = Field(
        2e-3, description="Learning rate at the start, after warm-up."
    )
    learning_rate_end: Annotated[float, Field(ge=0.0)] = Field(
        2e-4, description="Learning rate at the end."
    )
    learning_rate_schedule: Shape = Field(
        "linear", description="How the learning rate goes from start to end."
    )
    warmup: Fraction = Field(
        0.0, description="Fraction of the run in which the learning rate rises from zero."
    )
    entropy: Annotated[float, Field(ge=0.0)] = Field(
        0.01, description="Weight of the entropy bonus at the start."
    )
    entropy_end: Annotated[float, Field(ge=0.0)] = Field(
        0.002, description="Weight of the entropy bonus at the end."
    )
    entropy_schedule: Shape = Field(
        "linear", description="How the entropy weight goes from start to end."
    )
    clip_range: Annotated[float, Field(gt=0.0, lt=1.0)] = Field(
        0.2, description="How far the probability ratio may move before it is clipped."
    )
    value_weight: Annotated[float, Field(ge=0.0)] = Field(
        2.0, description="Weight of the value loss."
    )
    gamma: Annotated[float, Field(gt=0.0, le=1.0)] = Field(0.99, description="Discount per ply.")
    gae_lambda: Fraction = Field(
        0.6, description="Lambda of generalised advantage estimation at the start of the run."
    )
    gae_lambda_end: Fraction = Field(
        0.95, description="Lambda at the end; in between it goes linearly from one to the other."
    )
    normalize_advantages: bool = Field(
        True, description="Scale the advantages of each minibatch to mean 0, deviation 1."
    )
    max_grad_norm: Annotated[float, Field(gt=0.0)] = Field(
        0.5, description="Norm to which gradients are clipped."
    )
    target_kl: Annotated[float, Field(gt=0.0)] | None = Field(
        None, description="Approximate KL at which an update stops early; none: never."
    )
    weight_decay: Annotated[float, Field(ge=0.0)] = Field(
        0.0, description="Decoupled weight decay of AdamW."
    )
    mirror: bool = Field(
        False, description="Show each sample mirrored left to right with probability one half."
    )
    ema_decay: Annotated[float, Field(ge=0.0, lt=1.0)] = Field(
        0.0, description="Decay per update of averaged weights for play and export; 0: none."
    )
    ema_kl: Annotated[float, Field(ge=0.0)] = Field(
        0.0, description="Weight of the KL divergence to the averaged weights' policy."
    )
    nan_limit: Positive = Field(
        10, description="Minibatches in a row with a loss that is no number before the run stops."
    )

    @model_validator(mode="after")
    def _average_exists(self) -> Self:
        if self.ema_kl > 0.0 and self.ema_decay == 0.0:
            raise ValueError("ema_kl needs averaged weights: set ema_decay, for example to 0.99")
        return self


class ParallelConfig(Section):
    """Who plays: the learner itself, or workers beside it."""

    ddp: bool = Field(
        False, description="One of several learners that torchrun starts; gradients are averaged."
    )
    backend: Literal["processes", "ray"] = Field(
        "processes", description="Where workers are: processes on this machine; ray: on a cluster."
    )
    num_workers: NonNegative | Literal["auto"] = Field(
        0, description="Workers that play; 0: the learner itself (ray: as auto); auto: by cores."
    )
    inference: Literal["auto", "workers", "server"] = Field(
        "auto",
        description="Whom workers ask: a network of their own, or a server; auto: that on a GPU.",
    )
    worker_threads: NonNegative = Field(
        0, description="Threads of torch in a worker; 0: one, which wastes least."
    )
    max_lag: Annotated[int, Field(ge=0, le=16)] = Field(
        1, description="Updates by which weights that play may be behind; 0: workers wait."
    )
    max_failures: NonNegative = Field(
        5, description="Failures of workers in a row that are put up with before the run stops."
    )
    hang_seconds: Annotated[float, Field(gt=0.0)] = Field(
        120.0, description="Seconds without a sign of life after which a worker is replaced."
    )
    ray_address: Text = Field(
        "", description="Cluster of Ray to join: auto, or host:port; empty: Ray on this machine."
    )
    compression: Literal["off", "gzip", "bf16", "bf16+gzip"] = Field(
        "off", description="Weights on their way to Ray's workers; bf16: rounded to half the size."
    )

    @model_validator(mode="after")
    def _settings_go_together(self) -> Self:
        if self.backend == "ray" and self.inference == "server":
            raise ValueError("inference=server is for workers on one machine: not with backend=ray")
        if self.backend != "ray" and self.ray_address:
            raise ValueError("ray_address names a cluster, but backend is not ray")
        return self


class DeviceConfig(Section):
    """Where and how the network computes."""

    device: Text = Field("auto", description="cpu, cuda, cuda:1, mps; auto: the best there is.")
    mixed_precision: Literal["off", "bf16", "fp16", "auto"] = Field(
        "off", description="Autocast: off, bf16, fp16; auto: what is fastest and safe here."
    )
    compile: Literal["off", "on", "auto"] = Field(
        "off", description="torch.compile: off, on; auto: on where it was measured to be faster."
    )
    torch_threads: NonNegative = Field(0, description="Threads of torch; 0: one for each core.")
    deterministic: bool = Field(
        True, description="Ask torch for deterministic algorithms, so that runs can be repeated."
    )

    @field_validator("device")
    @classmethod
    def _is_a_device(cls, device: str) -> str:
        # Whether it is there is asked where training begins. Torch takes numbers modulo 256.
        if not re.fullmatch(r"auto|cpu|mps|cuda(:[1-9]?[0-9])?", device):
            raise ValueError("should be auto, cpu, mps, cuda or a GPU's number as in cuda:1")
        return device


class EvaluationConfig(Section):
    """How strength is measured while training."""

    interval: NonNegative = Field(
        25, description="Updates between evaluations; 0: only at the end."
    )
    background: Literal["auto", "on", "off"] = Field(
        "auto",
        description="Evaluate in another process beside training; auto: with a free core or a GPU.",
    )
    games: Positive = Field(128, description="Games against each opponent, colours alternating.")
    final_games: Positive = Field(400, description="Games against each opponent at the end.")
    opponents: tuple[Text, ...] = Field(
        ("random", "greedy"), description="Opponents, as player specs: random, alphabeta:2, usi:..."
    )
    ply_limit: Annotated[int, Field(gt=0, le=MAX_PLY_LIMIT)] = Field(
        512, description="Ply at which a game is a draw; longer than in self-play: wins take time."
    )
    opening_plies: NonNegative = Field(4, description="Random plies at the start of each game.")
    temperature: Annotated[float, Field(ge=0.0)] = Field(
        0.25, description="Temperature of the network's moves; 0: the likeliest, more draws."
    )
    mate_plies: MatePlies = Field(
        1, description="Let the network play a mate of so many plies that it is shown; 0: none."
    )


class CheckpointConfig(Section):
    """When and how the run's state is saved."""

    interval: NonNegative = Field(
        10, description="Updates between checkpoints; 0: only at the end. The last is always saved."
    )
    keep: Positive = Field(3, description="Newest checkpoints that are kept.")


class LoggingConfig(Section):
    """What is written and shown."""

    display: Literal["auto", "live", "plain", "off"] = Field(
        "auto", description="Terminal: live display, plain lines, off; auto: live on a terminal."
    )
    tensorboard: bool = Field(True, description="Write TensorBoard events.")
    sample_games: NonNegative = Field(
        4, description="Games written down as KIF and CSA at each evaluation."
    )
    wandb: Literal["off", "offline", "online"] = Field(
        "off", description="Weights & Biases (extra wandb): off, offline or online."
    )
    wandb_project: Text = Field("keisei", description="Project name at Weights & Biases.")
    wandb_timeout: Annotated[float, Field(gt=0.0)] = Field(
        60.0, description="Seconds to wait for Weights & Biases at the end of the run."
    )
    plugins: tuple[Text, ...] = Field(
        (), description="Callbacks to load, by the name of their entry point in keisei.callbacks."
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
