"""The database of a sweep: every trial in an SQLite file, by optuna.

New trials, their scores and their ends are written to disk at once. So a sweep that was killed
finds its trials again, and resumes those that were running under their old numbers.
"""

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from keisei.config import ConfigError, shown
from keisei.errors import KeiseiError
from keisei.sweep.space import (
    Choices,
    PrunerSettings,
    SamplerSettings,
    Sweep,
    Value,
)

if TYPE_CHECKING:
    import optuna

SWEEPS: Final = "sweeps"
"""Default directory of all sweeps."""

STUDY: Final = "study.sqlite3"
"""All trials with parameters and scores, readable by optuna's own tools."""

TRIALS: Final = "trials"
"""Directory of the runs, one per trial: ``keisei runs`` lists them."""

BEST: Final = "best.yaml"
"""Best trial so far as a recipe."""

PLOT: Final = "scores.png"
"""Plot of the scores, trial by trial."""

IN_USE: Final = "in-use.lock"
"""File lock of the process that runs the sweep."""

LOCKS: Final = "locks"
"""Directory of the file locks of the processes that train, one per trial."""

NAME: Final = "keisei"
"""Name of the only study in the file."""

_ABOUT: Final = "keisei"
"""Attribute of the study that describes what is searched."""

_HALVING: Final = 2

TrialState = Literal["running", "complete", "pruned", "failed"]


def trial_directory(sweep_directory: Path, number: int) -> Path:
    """Return the run directory of a trial."""
    return sweep_directory / TRIALS / f"trial-{number:04}"


def trial_lock(sweep_directory: Path, number: int) -> Path:
    """Return the file lock of the process that trains a trial."""
    return sweep_directory / LOCKS / f"trial-{number:04}.lock"


@dataclass(frozen=True)
class TrialRecord:
    """A trial as the study stores it."""

    number: int
    state: TrialState
    parameters: Mapping[str, Value]
    score: float | None
    """Result of a complete trial; of others, the last reported score if there is one."""

    games: int = 0
    """Number of games behind the score of a complete trial."""

    reason: str = ""
    """Why it failed."""

    def as_dict(self) -> dict[str, Any]:
        """Return the trial as ``keisei sweep --json`` prints it."""
        return {**vars(self), "parameters": dict(self.parameters)}


def import_optuna() -> Any:
    """Return the optuna package; raises `KeiseiError` with instructions if it is missing."""
    try:
        import optuna
    except ImportError as error:
        raise KeiseiError(
            "keisei sweep needs the package optuna, which is not installed: "
            'python -m pip install "keisei[sweep]"'
        ) from error
    return optuna


class OpenTrial:
    """A trial that has not ended."""

    def __init__(
        self, trial: "optuna.Trial", parameters: Mapping[str, Value], reported: Iterable[int]
    ) -> None:
        self._trial = trial
        self.number = trial.number
        self.parameters = parameters
        self._reported = set(reported)

    def report(self, part: int, score: float) -> bool:
        """Report the score in a part of the run; returns whether to prune the trial.

        Each part counts once: a trial that was resumed may report it a second time.
        """
        if part in self._reported:
            return False
        self._reported.add(part)
        self._trial.report(score, part)
        return self._trial.should_prune()


class Study:
    """The trials of a sweep, stored in its directory."""

    def __init__(self, sweep: Sweep, directory: Path) -> None:
        self._optuna = import_optuna()
        self._sweep = sweep
        # The sweep has a display of its own.
        self._optuna.logging.set_verbosity(self._optuna.logging.WARNING)
        from sqlalchemy.engine import URL

        url = URL.create("sqlite", database=str(directory / STUDY))
        try:
            self._storage = self._optuna.storages.RDBStorage(url.render_as_string())
            self._study: optuna.Study = self._optuna.create_study(
                study_name=NAME,
                storage=self._storage,
                direction="maximize",
                pruner=_pruner(self._optuna, sweep.pruner),
                load_if_exists=True,
            )
        except Exception as error:
            reason = str(error).partition("\n")[0]
            raise KeiseiError(f"{directory / STUDY} cannot be used: {reason}") from error
        self._require_same(directory)

    def close(self) -> None:
        """Close the file."""
        self._storage.remove_session()
        self._storage.engine.dispose()

    def records(self) -> list[TrialRecord]:
        """Return all trials in the order of their numbers."""
        return [_record(trial) for trial in self._study.get_trials(deepcopy=False)]

    def interrupted(self) -> list[int]:
        """Return the numbers of trials that have not ended."""
        return [record.number for record in self.records() if record.state == "running"]

    def best(self) -> TrialRecord | None:
        """Return the complete trial with the highest score; None while there is none."""
        complete = [record for record in self.records() if record.state == "complete"]
        return max(complete, key=lambda record: record.score or 0.0, default=None)

    def ask(self) -> OpenTrial:
        """Create a trial with new parameters."""
        self._study.sampler = self._sampler(len(self._study.get_trials(deepcopy=False)))
        return self._with_parameters(self._study.ask())

    def reopen(self, number: int) -> OpenTrial:
        """Return a trial that was running in an earlier session."""
        self._study.sampler = self._sampler(number)
        study_id = self._storage.get_study_id_from_name(NAME)
        trial_id = self._storage.get_trial_id_from_study_id_trial_number(study_id, number)
        return self._with_parameters(self._optuna.Trial(self._study, trial_id))

    def complete(self, number: int, score: float, games: int) -> None:
        """Store the score of a trial that has finished."""
        self._note(number, "games", games)
        self._study.tell(number, score)

    def prune(self, number: int) -> None:
        """Store that a trial was ended early."""
        self._study.tell(number, state=self._optuna.trial.TrialState.PRUNED)

    def fail(self, number: int, reason: str) -> None:
        """Store why a trial has no score."""
        self._note(number, "reason", reason)
        self._study.tell(number, state=self._optuna.trial.TrialState.FAIL)

    def importances(self) -> dict[str, float]:
        """Return the importance of each parameter for a good score, as shares; {} if unknown.

        Uses PED-ANOVA (Watanabe, Bansal and Hutter, 2023), which needs several complete trials.
        """
        importance = self._optuna.importance
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # optuna calls it experimental
            try:
                found = importance.get_param_importances(
                    self._study, evaluator=importance.PedAnovaImportanceEvaluator()
                )
            except (RuntimeError, ValueError):  # too few trials, or all alike
                return {}
        return {path: float(share) for path, share in found.items()}

    def _with_parameters(self, trial: "optuna.Trial") -> OpenTrial:
        """Give a trial its parameters; those that it already has, perhaps not all, stay."""
        parameters: dict[str, Value] = {}
        for path, parameter in self._sweep.space.items():
            if isinstance(parameter, Choices):
                parameters[path] = trial.suggest_categorical(
                    path, [str(choice) for choice in parameter.ends()]
                )
            elif parameter.whole:
                parameters[path] = trial.suggest_int(
                    path, int(parameter.low), int(parameter.high),
                    step=int(parameter.step or 1), log=parameter.log,
                )  # fmt: skip
            else:
                parameters[path] = trial.suggest_float(
                    path, parameter.low, parameter.high, step=parameter.step, log=parameter.log
                )
        known = self._study.get_trials(deepcopy=False)[trial.number]
        return OpenTrial(trial, parameters, known.intermediate_values)

    def _sampler(self, number: int) -> "optuna.samplers.BaseSampler":
        """Return the sampler of one trial.

        Its seed depends on the trial's number: a single seed for the sweep would draw the first
        trials again after each resume.
        """
        import numpy as np

        settings: SamplerSettings = self._sweep.sampler
        seed = int(np.random.SeedSequence([settings.seed, number]).generate_state(1)[0])
        samplers = self._optuna.samplers
        if settings.kind == "random":
            return cast("optuna.samplers.BaseSampler", samplers.RandomSampler(seed=seed))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # optuna 4 calls constant_liar experimental
            return cast(
                "optuna.samplers.BaseSampler",
                samplers.TPESampler(
                    seed=seed,
                    n_startup_trials=settings.startup_trials,
                    constant_liar=True,  # trials side by side keep away from each other
                ),
            )

    def _note(self, number: int, name: str, value: object) -> None:
        study_id = self._storage.get_study_id_from_name(NAME)
        trial_id = self._storage.get_trial_id_from_study_id_trial_number(study_id, number)
        self._storage.set_trial_user_attr(trial_id, name, value)

    def _require_same(self, directory: Path) -> None:
        """Refuse to continue with other settings: the scores could not be compared."""
        now = _about(self._sweep)
        before = self._study.user_attrs.get(_ABOUT)
        if before is None:
            self._study.set_user_attr(_ABOUT, now)
            return
        problems = [
            f"{path}: was {shown(before.get(path))}, is now {shown(now.get(path))}"
            for path in dict.fromkeys((*before, *now))
            # Fields that only one version of Keisei knows do not count as changes.
            if before.get(path) != now.get(path)
            and (not path.startswith("settings: ") or (path in before and path in now))
        ]
        if problems:
            raise ConfigError(
                [
                    f"{directory} holds trials of another search; undo the change, or start "
                    "another sweep with --name",
                    *problems,
                ]
            )


def _about(sweep: Sweep) -> dict[str, Any]:
    """Return by name what must not change between two sessions of a sweep."""
    searched = {f"space: {path}": str(parameter) for path, parameter in sweep.space.items()}
    settings = {
        f"settings: {section}.{field}": value
        for section, fields in sweep.config().model_dump(mode="json").items()
        for field, value in fields.items()
        if f"{section}.{field}" not in sweep.space
    }
    return {"objective.against": list(sweep.objective.against), **searched, **settings}


def _pruner(optuna: Any, settings: PrunerSettings) -> Any:
    """Return the pruner, whose steps are the parts of a run."""
    match settings.kind:
        case "off":
            return optuna.pruners.NopPruner()
        case "halving":
            return optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=_HALVING)
        case "median":
            return optuna.pruners.MedianPruner(
                n_startup_trials=settings.startup_trials,
                n_warmup_steps=round(settings.warmup * settings.parts),
            )


def _record(trial: "optuna.trial.FrozenTrial") -> TrialRecord:
    states: dict[str, TrialState] = {"COMPLETE": "complete", "PRUNED": "pruned", "FAIL": "failed"}
    score = trial.value
    if trial.state.name != "COMPLETE":
        reports = trial.intermediate_values
        score = reports[max(reports)] if reports else None
    return TrialRecord(
        number=trial.number,
        state=states.get(trial.state.name, "running"),
        parameters=trial.params,
        score=score,
        games=int(trial.user_attrs.get("games", 0)),
        reason=str(trial.user_attrs.get("reason", "")),
    )
