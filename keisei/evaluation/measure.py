"""Strength of a network during training: its rating, and scores against some opponents."""

from collections.abc import Callable
from typing import NamedTuple

from keisei.config_schema import AppConfig
from keisei.evaluation.calibration import GAMES as CALIBRATION_GAMES
from keisei.evaluation.calibration import Calibration, measure_calibration
from keisei.evaluation.match import MatchResult, MatchSettings, play_match
from keisei.evaluation.placing import Placement, PlacingSettings, place_player
from keisei.evaluation.results import Conditions
from keisei.evaluation.scale import current_scale
from keisei.evaluation.score import Score
from keisei.network.predictor import Network
from keisei.players.network import PolicyPlayer
from keisei.players.spec import make_player
from keisei.shogi.notation.record import GameRecord
from keisei.shogi.rules import DeclarationRule

NETWORK = "network"
"""The network's name in the records of its games."""


class Measurement(NamedTuple):
    """Scores of a network, and some of its games."""

    scores: dict[str, Score]
    """Score against each opponent of the settings, by spec."""

    placement: Placement | None
    """Rating on the scale; None if it was not asked for."""

    met: dict[str, Score]
    """Score against each reference of the scale, by identity: what the rating follows from."""

    calibration: Calibration
    """How good its values are."""

    records: tuple[GameRecord, ...]
    """Some games against each opponent."""


def manner_of_play(temperature: float, mate_plies: int) -> str:
    """Describe how a network plays when it is measured.

    >>> manner_of_play(0.25, 3)
    'by its policy at temperature 0.25, with mates of up to 3 plies by rule'
    """
    by_rule = f"with mates of up to {mate_plies} plies by rule"
    if mate_plies <= 1:
        by_rule = "with mates in one by rule" if mate_plies else "without a mate rule"
    return f"by its policy at temperature {temperature:g}, {by_rule}"


def measure(
    network: Network,
    config: AppConfig,
    *,
    games: int,
    within: float,
    seed: int,
    sample_games: int = 0,
    on_games: Callable[[int, int], None] = lambda games, at_most: None,
) -> Measurement:
    """Play a network against each opponent of ``config.evaluation``, and place it on the scale.

    Args:
        network: the network to measure.
        config: the settings of its run.
        games: games against each opponent.
        within: points within which the rating is to be known; 0: no rating.
        seed: seed of the matches.
        sample_games: number of games of each match to return as records.
        on_games: called after each ply with the games so far, and all games at most.
    """
    settings = config.evaluation
    player = PolicyPlayer(
        network,
        name=NETWORK,
        identity=NETWORK,
        temperature=settings.temperature,
        mate_plies=settings.mate_plies,
    )
    match = MatchSettings(
        games=games,
        seed=seed,
        ply_limit=settings.ply_limit,
        opening_plies=settings.opening_plies,
        declaration=DeclarationRule.named(config.env.declaration),
        keep_games=sample_games,
    )
    scale = current_scale()
    at_most = games * len(settings.opponents) + CALIBRATION_GAMES
    at_most += settings.max_games if within else 0
    played = 0

    def games_after(before: int) -> Callable[[MatchResult], None]:
        return lambda result: on_games(before + len(result.games), at_most)

    known: dict[str, Score] = {}
    scores: dict[str, Score] = {}
    records: list[GameRecord] = []
    for spec in settings.opponents:
        opponent = make_player(spec, threads=network.threads)
        try:
            result = play_match(player, opponent, match, on_games=games_after(played))
        finally:
            opponent.close()
        played += len(result.games)
        scores[spec] = result.score
        records += result.records
        if opponent.identity in scale.ratings and Conditions.of(match) == scale.conditions:
            known[opponent.identity] = result.score
    placement = None
    met = known
    if within:
        known_games = sum(score.games for score in known.values())
        placing = place_player(
            player,
            scale,
            PlacingSettings(within=within, max_games=settings.max_games + known_games),
            seed=seed,
            threads=network.threads,
            known=known,
            on_games=lambda progress: on_games(played - known_games + progress.games, at_most),
        )
        placement, met = placing.placement, placing.scores
        played += placement.games - known_games
    on_games(played, at_most)
    calibration = measure_calibration(network, config, seed=seed)
    return Measurement(scores, placement, met, calibration, tuple(records))
