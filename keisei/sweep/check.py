"""Checks a search space before the first trial, and reports every problem at once."""

import math
from collections.abc import Callable, Hashable, Iterator, Mapping
from itertools import product
from typing import Any, Final

from keisei.config import ConfigError, sections, shown
from keisei.config_schema import AppConfig
from keisei.errors import KeiseiError
from keisei.sweep.space import Range, Sweep, Value

RESERVED: Final = ("run.name", "run.root")
"""Fields that the sweep sets for each trial."""

_MAX_COMBINATIONS: Final = 256
"""Maximum number of combinations of values that are all checked."""

_NUMBERS: Final = frozenset({"integer", "number"})


def checked(sweep: Sweep) -> Sweep:
    """Return a valid sweep in which each range knows whether its field takes whole numbers.

    The ends of each range and all choices are merged and validated as configurations. With few
    parameters all combinations are tried, with many each value with the first and with the last
    values of the others, so that fields that do not fit together are found too.

    Raises:
        ConfigError: The sweep is invalid; the message lists every problem.
    """
    base = sweep.config()
    problems = [*_misplaced(sweep)]
    space = {}
    for path, parameter in sweep.space.items():
        try:
            space[path] = _fitted(path, parameter) if isinstance(parameter, Range) else parameter
        except ValueError as error:
            problems.append(f"space: {path}: {error}")
    if space:
        fitted = sweep.model_copy(update={"space": space})
        problems += _refused(fitted)
        problems += _unmeasured(fitted, base) if not problems else []
    if problems:
        raise ConfigError(problems)
    return fitted


def require_set_up(sweep: Sweep) -> None:
    """Check what only training would notice: opponents, devices and networks can be set up.

    Raises:
        ConfigError: Something cannot be set up; the message lists every problem.
    """
    problems: dict[str, None] = {}
    seen: set[Hashable] = set()
    for parameters in _combinations(sweep):
        config = sweep.config(parameters)
        for key, attempt in _attempts(config):
            if key in seen:
                continue
            seen.add(key)
            try:
                attempt()
            except KeiseiError as error:
                problems[f"space: {error} (with {_shown(parameters)})"] = None
    if problems:
        raise ConfigError(list(problems))


def _attempts(config: AppConfig) -> Iterator[tuple[Hashable, Callable[[], object]]]:
    """Yield the set-up steps of training, each with the settings that it depends on."""
    from keisei.network.model_factory import network_device
    from keisei.players.spec import make_player
    from keisei.training.run import require_allowed

    require_allowed(config)
    for spec in config.evaluation.opponents:
        yield spec, lambda spec=spec: make_player(spec, threads=1).close()  # type: ignore[misc]
    yield (config.device, config.model.type), lambda: network_device(config)
    yield (config.model, config.env.input_features), lambda: _build_network(config)


def _build_network(config: AppConfig) -> None:
    from keisei.network.model_factory import check_model
    from keisei.shogi.features import feature_spec

    check_model(config.model, feature_spec(config.env.input_features))


def _misplaced(sweep: Sweep) -> Iterator[str]:
    fixed = set(_paths(sweep.set))
    for path in RESERVED:
        if path in fixed or path in sweep.space:
            yield f"{path}: is set by the sweep for each trial; remove it"
    for path in sweep.space:
        if path in fixed:
            yield f"{path}: is both set and searched; remove one of the two"


def _paths(settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield the fields that are set, by ``section.field`` or by section."""
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield from (f"{key}.{field}" for field in value)
        else:
            yield key


def _fitted(path: str, parameter: Range) -> Range:
    """Return a range with whole numbers if its field requires them."""
    kinds = _kinds(path)
    if kinds and not kinds & _NUMBERS:
        raise ValueError("is not a number; use choices: [...]")
    is_whole = "integer" in kinds and "number" not in kinds
    if parameter.whole is False and is_whole:
        raise ValueError("takes whole numbers: int should be true, or left out")
    whole = is_whole if parameter.whole is None else parameter.whole
    given = parameter.model_dump(by_alias=True)
    return Range.model_validate({**given, "int": whole})


def _kinds(path: str) -> set[str]:
    """Return the JSON types of a field; none for an unknown field."""
    section, _, field = path.partition(".")
    schema = sections()[section].model_json_schema() if section in sections() else {}
    described = schema.get("properties", {}).get(field, {})
    return {kind.get("type", "string") for kind in described.get("anyOf", [described]) if kind}


def _refused(sweep: Sweep) -> list[str]:
    """Return the problems of the configuration at the ends of the space."""
    found: dict[str, str] = {}
    for parameters in _combinations(sweep):
        try:
            sweep.config(parameters)
        except ConfigError as error:
            for problem in error.problems:
                is_own = problem.partition(":")[0] in sweep.space
                together = "" if is_own else f" (with {_shown(parameters)})"
                found.setdefault(problem, f"space: {problem}{together}")
    return list(found.values())


def _unmeasured(sweep: Sweep, base: AppConfig) -> Iterator[str]:
    """Yield why the objective cannot be measured, or cannot be used for pruning."""
    for parameters in _combinations(sweep):
        opponents = sweep.config(parameters).evaluation.opponents
        missing = [spec for spec in sweep.objective.against if spec not in opponents]
        if missing:
            yield (
                f"objective.against: {', '.join(missing)} is not among evaluation.opponents, "
                f"which are {', '.join(opponents)}"
            )
            break
    if sweep.pruner.kind != "off" and base.evaluation.interval == 0:
        yield (
            "pruner: without evaluations during training there is nothing to prune by: "
            "set evaluation.interval, or pruner.kind to off"
        )


def _combinations(sweep: Sweep) -> Iterator[dict[str, Value]]:
    ends = {path: parameter.ends() for path, parameter in sweep.space.items()}
    if math.prod(map(len, ends.values())) <= _MAX_COMBINATIONS:
        for values in product(*ends.values()):
            yield dict(zip(ends, values, strict=True))
        return
    for place in (0, -1):
        others = {path: values[place] for path, values in ends.items()}
        for path, values in ends.items():
            for value in values:
                yield {**others, path: value}


def _shown(parameters: Mapping[str, Value]) -> str:
    return ", ".join(f"{path}={shown(value)}" for path, value in parameters.items())
