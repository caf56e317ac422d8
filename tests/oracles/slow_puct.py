"""A tree search as the text books write it, over `ShogiGame` objects: the reference of `search`."""

import math
from dataclasses import dataclass, field

import numpy as np

from keisei.network.predictor import MIN_DEVIATION, Predictor
from keisei.search.puct import Puct
from keisei.search.simulation import REPETITION_COST
from keisei.shogi.game import ShogiGame
from keisei.shogi.packed import Positions, pack_game


@dataclass
class Node:
    """A position of the tree; values are for its side to move."""

    prior: float = 1.0
    visits: int = 0
    value_sum: float = 0.0
    value: float = 0.0
    is_won: bool | None = None
    """Whether it is proven won or lost; None: neither."""

    is_expanded: bool = False
    children: dict[int, "Node"] = field(default_factory=dict)
    """By action, in the order of the legal list; visited or not."""


def slow_search(predictor: Predictor, game: ShogiGame, simulations: int, puct: Puct) -> Node:
    """Return the root after some simulations; those after a proof are not run."""
    root = Node(visits=1)
    _expand(predictor, game, root, puct)
    for _ in range(simulations):
        if root.is_won is not None:
            break
        _simulate(predictor, game.copy(), [root], puct)
    return root


def _simulate(predictor: Predictor, game: ShogiGame, path: list[Node], puct: Puct) -> None:
    while True:
        action, child = _select(path[-1], puct, is_root=len(path) == 1)
        game.push_action(action)
        path.append(child)
        if not child.visits:
            is_fixed = _judge(game, child, len(path) - 1)
            if child.is_won is None and not is_fixed:
                _expand(predictor, game, child, puct)
            break
        if not child.is_expanded or child.is_won is not None:
            break
    value = path[-1].value
    for place in range(len(path) - 1, -1, -1):
        node = path[place]
        if place < len(path) - 1:
            value = -value
            if any(child.is_won is False for child in node.children.values()):
                node.is_won, node.value = True, 1.0
            elif all(child.is_won for child in node.children.values()):
                node.is_won, node.value = False, -1.0
            if node.is_won is not None:
                value = node.value
        node.visits += 1
        node.value_sum += value


def _select(node: Node, puct: Puct, *, is_root: bool) -> tuple[int, Node]:
    tried = sum(child.prior for child in node.children.values() if child.visits)
    untried_value = node.value - (0.0 if is_root else puct.fpu_reduction * math.sqrt(tried))

    def score(child: Node) -> float:
        if child.is_won:
            return -math.inf
        value = -child.value_sum / child.visits if child.visits else untried_value
        bonus = puct.c_puct * child.prior * math.sqrt(node.visits) / (1 + child.visits)
        return value + bonus

    # Of equals the one that was tried, then the likelier, then the first.
    return max(
        node.children.items(), key=lambda item: (score(item[1]), item[1].visits > 0, item[1].prior)
    )


def _judge(game: ShogiGame, node: Node, plies: int) -> bool:
    """Set what the rules say of a new node; return whether its value is fixed: a draw, or so."""
    outcome = game.outcome(claim_declaration=True)
    if outcome is not None:
        if outcome.winner is None:
            return True
        node.is_won = outcome.winner is game.turn
        node.value = 1.0 if node.is_won else -1.0
        return False
    if game.repetitions:
        node.value = _value_of_repetition(game, plies)
        return True
    if game.mate_in_one() is not None:
        node.is_won, node.value = True, 1.0
    return False


def _value_of_repetition(game: ShogiGame, plies: int) -> float:
    keys, checks = game.history
    now = len(keys) - 1
    before = max(index for index in range(now) if keys[index] == keys[now])
    if all(checks[index] for index in range(now, before, -2)):
        return 1.0  # the other side has given check with each of its moves
    if all(checks[index] for index in range(now - 1, before, -2)):
        return -1.0
    return -REPETITION_COST if plies % 2 == 0 else REPETITION_COST


def _expand(predictor: Predictor, game: ShogiGame, node: Node, puct: Puct) -> None:
    legal = game.legal_actions
    counts = np.array([len(legal)], dtype=np.int32)
    prediction = predictor.predict(Positions(pack_game(game), legal[None], counts))
    log_probs = prediction.log_probs[0, : len(legal)].astype(np.float64)
    scale = puct.policy_scale / max(log_probs.std(), MIN_DEVIATION)
    weights = np.exp(scale * (log_probs - log_probs.max()))
    priors = (weights / weights.sum()).tolist()
    node.children = {
        action: Node(prior) for action, prior in zip(legal.tolist(), priors, strict=True)
    }
    node.value = float(prediction.values[0])
    node.is_expanded = True
