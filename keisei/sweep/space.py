"""``SPACE.yaml``: the parameters that a sweep searches, its budget and its objective.

The settings of a trial are merged by `Sweep.config`, in the same way as every configuration: the
base, then what the sweep fixes, then the parameters of the trial.
"""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    model_validator,
)

from keisei.config import ConfigError, allowed_by, decode, load_config, parse, recipes, shown
from keisei.config_schema import AppConfig, Fraction, NonNegative, Positive, Text
from keisei.system import FileAccessError, read_bytes, require_possible

Value = float | int | str
"""A parameter's value as the study stores it; choices are stored as text."""

_MAX_PARTS: Final = 1_000
_NONE: Final[Mapping[str, object]] = {}


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Range(_Settings):
    """Numbers from `low` to `high`, both included."""

    low: float = Field(description="Smallest value.")
    high: float = Field(description="Largest value.")
    log: bool = Field(False, description="Search the order of magnitude: for rates and weights.")
    step: Annotated[float, Field(gt=0.0)] | None = Field(
        None, description="Distance between two values; none: any value in between."
    )
    whole: bool | None = Field(
        None, alias="int", description="Whole numbers only; by default as the field requires."
    )

    @model_validator(mode="after")
    def _check_range(self) -> Self:
        if self.low >= self.high:
            raise ValueError(
                f"low {self.low:g} should be less than high {self.high:g}; "
                "a value that is not searched belongs under set"
            )
        if self.log and self.low <= 0.0:
            raise ValueError(f"log needs a low greater than 0, not {self.low:g}")
        if self.log and self.step is not None:
            raise ValueError("log and step exclude each other")
        if self.step is not None:
            steps = (self.high - self.low) / self.step
            if abs(steps - round(steps)) > 1e-9 * max(1.0, steps):
                nearest = self.low + math.floor(steps) * self.step
                raise ValueError(
                    f"high should be a whole number of steps above low: {nearest:g} instead of "
                    f"{self.high:g}"
                )
        if self.whole:
            for name in ("low", "high", "step"):
                number = getattr(self, name)
                if number is not None and not float(number).is_integer():
                    raise ValueError(f"{name} should be a whole number, not {number:g}")
        return self

    def ends(self) -> tuple[Value, ...]:
        """Return the values that decide whether the whole range is valid."""
        return self.stored(self.low), self.stored(self.high)

    def stored(self, value: Any) -> Value:
        """Return a value as the study stores it."""
        number = float(value)
        return round(number) if self.whole else number

    def setting(self, stored: Value) -> object:
        """Return a stored value as the configuration takes it."""
        return stored

    def grid(self) -> list[Value]:
        """Return all values of a range with steps."""
        assert self.step is not None
        count = round((self.high - self.low) / self.step)
        return [self.stored(self.low + index * self.step) for index in range(count + 1)]

    def __str__(self) -> str:
        low, high = (f"{self.stored(end):g}" for end in (self.low, self.high))
        notes = [", log" if self.log else "", f", step {self.step:g}" if self.step else ""]
        return f"{low} to {high}{''.join(notes)}"


class Choices(_Settings):
    """One of several unordered values: words, switches, or numbers that are far apart."""

    choices: tuple[Any, ...] = Field(description="The values.")

    @model_validator(mode="after")
    def _check_choices(self) -> Self:
        labels = self.ends()
        if len(labels) < 2:
            raise ValueError("choices should be at least two; a single value belongs under set")
        if len(set(labels)) < len(labels):
            raise ValueError("choices should differ from each other")
        return self

    def ends(self) -> tuple[Value, ...]:
        """Return all values."""
        return tuple(_label(choice) for choice in self.choices)

    def stored(self, value: Any) -> Value:
        """Return a value as the study stores it."""
        return _label(value)

    def setting(self, stored: Value) -> object:
        """Return a stored value as the configuration takes it."""
        return {_label(choice): choice for choice in self.choices}.get(str(stored), stored)

    def __str__(self) -> str:
        return ", ".join(map(str, self.ends()))


def _label(choice: Any) -> str:
    """Return a choice as text, since studies cannot store lists."""
    if choice is None:
        return "none"
    return choice if isinstance(choice, str) else json.dumps(choice)


def _kind(value: Any) -> str:
    is_choice = isinstance(value, Choices) or (isinstance(value, Mapping) and "choices" in value)
    return "choices" if is_choice else "range"


Parameter = Annotated[
    Annotated[Range, Tag("range")] | Annotated[Choices, Tag("choices")], Discriminator(_kind)
]


class Objective(_Settings):
    """The value to maximize: the score of a trial's last evaluation, 0 to 1."""

    against: Annotated[
        tuple[Text, ...],
        BeforeValidator(lambda value: [value] if isinstance(value, str) else value),
    ] = Field(("greedy",), description="Opponent, or several: then the mean of the scores.")

    @model_validator(mode="after")
    def _check_opponents(self) -> Self:
        if not self.against:
            raise ValueError("against should name an opponent, such as greedy")
        return self


class SamplerSettings(_Settings):
    """The choice of the next parameters."""

    kind: Literal["tpe", "random"] = Field(
        "tpe", description="tpe learns from the trials so far; random does not."
    )
    seed: NonNegative = Field(
        0, description="Random seed; trials one by one are then reproducible."
    )
    startup_trials: Positive = Field(10, description="Random trials before tpe begins to learn.")


class PrunerSettings(_Settings):
    """When a trial with low scores is ended early."""

    kind: Literal["median", "halving", "off"] = Field(
        "median",
        description="median: below the median of others; halving: in the lower half; off: never.",
    )
    startup_trials: NonNegative = Field(
        5, description="Complete trials before the first is pruned (median)."
    )
    warmup: Fraction = Field(0.2, description="Fraction of a run before it can be pruned (median).")
    parts: Annotated[int, Field(ge=2, le=_MAX_PARTS)] = Field(
        10, description="Parts of a run; the first evaluation in each is compared."
    )


class Sweep(_Settings):
    """A search space with the settings of the search."""

    base: Text = Field(
        "", description="Recipe, or YAML file, that the trials start from; empty: the defaults."
    )
    trials: Positive = Field(description="Trials to complete or prune; failed ones do not count.")
    side_by_side: Positive = Field(1, description="Trials that train at the same time.")
    failures_in_a_row: Positive = Field(
        3, description="Consecutive failed trials after which the sweep stops."
    )
    objective: Objective = Field(default_factory=Objective)
    set: dict[str, Any] = Field(default_factory=dict, description="Fixed values by section.field.")
    space: dict[str, Parameter] = Field(
        min_length=1, description="Searched values by section.field."
    )
    sampler: SamplerSettings = Field(default_factory=SamplerSettings)
    pruner: PrunerSettings = Field(default_factory=PrunerSettings)

    def config(
        self,
        parameters: Mapping[str, Value] | None = None,
        flags: Mapping[str, object] = _NONE,
    ) -> AppConfig:
        """Return the settings of a trial, merged from base, `set`, `flags` and parameters."""
        searched = {
            path: self.space[path].setting(value) if path in self.space else value
            for path, value in (parameters or {}).items()
        }
        return load_config(self.base or None, flags={**self.set, **flags}, sweep=searched)


def load_space(path: Path) -> Sweep:
    """Read a search space; `keisei.sweep.check` checks whether its values are valid.

    Raises:
        ConfigError: The file itself is invalid; the message lists every problem.
        FileAccessError: The file cannot be read.
    """
    file = spaces().get(str(path), path)
    try:
        data = read_bytes(file)
    except FileAccessError as error:
        known = ", ".join(spaces())
        raise FileAccessError(
            f"{error}; the search spaces that come with Keisei are {known}"
        ) from error
    document = parse(decode(data, str(file)), str(file))
    if not isinstance(document, Mapping):
        raise ConfigError([f"{file}: should contain settings of a sweep, such as `space:`"])
    try:
        sweep = Sweep.model_validate(document)
    except ValidationError as error:
        raise ConfigError([f"{file}: {problem}" for problem in _problems(error)]) from None
    return sweep.model_copy(update={"base": _base(sweep.base, file)})


def spaces() -> dict[str, Path]:
    """Return the search spaces that come with Keisei, by name."""
    folder = next(iter(recipes().values())).parent / "sweeps"
    return {path.stem: path for path in sorted(folder.glob("*.yaml"))}


def _base(base: str, file: Path) -> str:
    """Return the base as `load_config` finds it: a recipe, or a file, perhaps next to the space."""
    beside = file.parent / base
    require_possible(beside)
    return str(beside) if base and base not in recipes() and beside.is_file() else base


def _problems(error: ValidationError) -> list[str]:
    found = []
    for fault in error.errors(include_url=False):
        location = fault["loc"]
        if location[:1] == ("space",):  # the third part is the tag of the union
            location = (*location[:2], *location[3:])
        place = ".".join(map(str, location))
        match fault["type"]:
            case "extra_forbidden":
                found.append(f"{place}: unknown; valid names are {', '.join(_known(location))}")
            case "missing":
                found.append(f"{place}: is missing")
            case "value_error":
                found.append(f"{place}: {allowed_by(fault)}")
            case _:
                value = shown(fault["input"])
                found.append(f"{place}: {value} is not allowed: {allowed_by(fault)}")
    return found


def _known(location: Sequence[int | str]) -> list[str]:
    """Return the valid names in the place of an unknown one."""
    models: dict[str, type[BaseModel]] = {
        "objective": Objective,
        "sampler": SamplerSettings,
        "pruner": PrunerSettings,
        "space": Range,
    }
    model = Sweep if len(location) == 1 else models[str(location[0])]
    names = [field.alias or name for name, field in model.model_fields.items()]
    return [*names, "or choices alone"] if model is Range else names
