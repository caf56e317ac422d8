"""Judges whose opinions are known."""

import numpy as np
import numpy.typing as npt

from keisei.search.judge import Judgement
from keisei.shogi.material import material_potentials
from keisei.shogi.notation.record import GameRecord
from keisei.shogi.position import Records


class MaterialJudge:
    """Values material, likes moves the more the later they stand in the list; counts its calls."""

    def __init__(self) -> None:
        self.asked: list[Records] = []

    def judge(
        self,
        packed: Records,
        legal_actions: npt.NDArray[np.uint16],
        legal_counts: npt.NDArray[np.int32],
    ) -> Judgement:
        self.asked.append(packed.copy())
        width = int(legal_counts.max())
        logits = np.where(np.arange(width) < legal_counts[:, None], 0.1 * np.arange(width), -np.inf)
        log_probs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        values = material_potentials(packed)
        return Judgement(log_probs.astype(np.float32), values.astype(np.float32))


def short_game() -> GameRecord:
    """Black gives a bishop for a pawn, and a search sees it before it is taken."""
    return GameRecord.from_moves(
        ["7g7f", "3c3d", "8h3c+", "2a3c", "2g2f", "4a3b"],
        headers={"black": "Akane", "white": "Botan"},
    )
