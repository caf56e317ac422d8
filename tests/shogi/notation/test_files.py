"""Game files: suffixes, encodings, atomic writes, and files of USI lines."""

import random
from pathlib import Path

import pytest

from keisei.errors import KeiseiError, NotationError
from keisei.shogi.notation.csa import write_csa
from keisei.shogi.notation.files import (
    SUFFIXES,
    USI_SUFFIXES,
    load_game,
    load_games,
    read_usi,
    save_game,
    save_games,
)
from keisei.shogi.notation.kif import write_kif
from keisei.shogi.notation.record import GameRecord
from keisei.shogi.notation.sfen import format_sfen
from tests.shogi.notation.random_records import (
    random_record,
    without_bookmarks,
    without_times,
)

NAMES = {"black": "髙橋 太郎", "white": "ボタン～", "event": "①回戦"}
"""Characters of the Shift-JIS of Windows that the standard lacks."""


@pytest.fixture
def record() -> GameRecord:
    return random_record(random.Random(7), plies=30)


def kept(record: GameRecord, suffix: str) -> GameRecord:
    """The part of a record that files of a suffix can store."""
    if suffix == ".csa":
        return without_bookmarks(record)
    return without_times(record) if suffix.startswith(".ki2") else record


@pytest.mark.parametrize("encoding", [None, "utf-8", "utf-8-sig", "cp932", "Shift_JIS"])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_suffix_in_every_encoding(
    tmp_path: Path, record: GameRecord, suffix: str, encoding: str | None
) -> None:
    path = tmp_path / f"game{suffix}"
    save_game(record, path, encoding)
    assert load_game(path) == kept(record, suffix)
    assert load_games(str(path)) == [kept(record, suffix)]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_windows_characters(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"game{suffix.upper()}"
    record = GameRecord.from_moves(["7g7f"], headers=NAMES)
    save_game(record, path, "cp932")
    assert load_game(path) == record


@pytest.mark.parametrize(
    ("suffix", "encoding", "line_break"),
    [
        (".csa", "utf-8", b"\n"),
        (".kif", "cp932", b"\r\n"),
        (".kifu", "utf-8", b"\n"),
        (".ki2", "cp932", b"\r\n"),
        (".ki2u", "utf-8", b"\n"),
    ],
)
def test_customs_of_the_suffixes(
    tmp_path: Path, record: GameRecord, suffix: str, encoding: str, line_break: bytes
) -> None:
    path = tmp_path / f"game{suffix}"
    save_game(record, path)
    data = path.read_bytes()
    assert data.decode(encoding)
    assert data.endswith(line_break)
    assert data.count(b"\r") == (data.count(b"\n") if line_break == b"\r\n" else 0)


def test_csa_declares_its_encoding(tmp_path: Path, record: GameRecord) -> None:
    path = tmp_path / "game.csa"
    save_game(record, path)
    assert path.read_bytes().startswith(b"'CSA encoding=UTF-8\nV3.0\n")
    save_game(record, path, "cp932")
    assert path.read_bytes().startswith(b"'CSA encoding=SHIFT_JIS\r\nV3.0\r\n")
    save_game(record, path, csa_version="2.2")
    assert path.read_bytes().startswith(b"V2.2\n")


@pytest.mark.parametrize(
    ("declared", "actual"),
    [
        *(("UTF-8", actual) for actual in ("utf-8", "utf-8-sig", "cp932")),
        ("SHIFT_JIS", "cp932"),
        ("SHIFT_JIS", "utf-8-sig"),
    ],
)
def test_a_wrong_declaration_does_not_mislead(tmp_path: Path, declared: str, actual: str) -> None:
    record = GameRecord.from_moves(["7g7f"], headers={"black": "あかね"})
    path = tmp_path / "game.csa"
    path.write_bytes(write_csa(record, encoding=declared).encode(actual))
    assert load_game(path) == record


def test_a_character_that_shift_jis_lacks(tmp_path: Path) -> None:
    path = tmp_path / "game.kif"
    record = GameRecord.from_moves(["7g7f"], headers={"black": "A", "white": "B 🦆"})
    with pytest.raises(
        NotationError, match=r"'🦆' cannot be written in cp932; save as UTF-8"
    ) as caught:
        save_game(record, path)
    assert (caught.value.line, caught.value.column) == (3, 6)
    assert list(tmp_path.iterdir()) == []
    save_game(record, path.with_suffix(".kifu"))
    assert load_game(path.with_suffix(".kifu")) == record


def test_unknown_encodings(tmp_path: Path, record: GameRecord) -> None:
    for encoding in ("utf-16", "klingon"):
        with pytest.raises(NotationError, match=f"'{encoding}' is not an encoding of game files"):
            save_game(record, tmp_path / "game.csa", encoding)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "game.kif"
    path.write_bytes("先手：あかね\n後手：".encode() + b"\xff\xfe\n")
    with pytest.raises(NotationError, match="not text in UTF-8, Shift-JIS or EUC-JP") as caught:
        load_games(path)
    assert (caught.value.line, caught.value.column) == (2, 10)


def test_faults_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "broken.kif"
    path.write_bytes(b"1 76\x95\xe0(77)\r\n2 1nonsense\r\n")
    with pytest.raises(NotationError, match=r"line 2, column 3: .*broken\.kif") as caught:
        load_game(path)
    assert (caught.value.line, caught.value.column) == (2, 3)


@pytest.mark.parametrize("name", ["game.pgn", "game", ".csa"])
def test_unknown_suffixes(tmp_path: Path, record: GameRecord, name: str) -> None:
    with pytest.raises(KeiseiError, match=r"ends in one of \.csa \.kif \.kifu \.ki2 \.ki2u"):
        load_games(tmp_path / name)
    with pytest.raises(KeiseiError, match=r"ends in one of \.csa"):
        save_game(record, tmp_path / name)


def test_several_games(tmp_path: Path, record: GameRecord) -> None:
    games = [kept(record, ".csa"), GameRecord.from_moves(["2g2f"])]
    save_games(games, tmp_path / "games.csa")
    assert load_games(tmp_path / "games.csa") == games
    with pytest.raises(NotationError, match="holds 2 games; load_games reads them all"):
        load_game(tmp_path / "games.csa")
    with pytest.raises(NotationError, match=r"a \.kif file holds one game, not 2; use \.csa"):
        save_games(games, tmp_path / "games.kif")
    with pytest.raises(NotationError, match="no game to write"):
        save_games([], tmp_path / "games.csa")


def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, record: GameRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "game.kifu"
    save_game(record, path)

    def no_replace(self: Path, target: Path) -> Path:
        raise OSError("disk on fire")

    monkeypatch.setattr(Path, "replace", no_replace)
    with pytest.raises(OSError, match="disk on fire"):
        save_game(GameRecord(), path)
    assert path.read_text(encoding="utf-8") == write_kif(record)
    assert list(tmp_path.iterdir()) == [path]


ENDGAME = "4k4/9/4P4/9/9/9/9/9/4K4 b G 41"
USI_LINES = f"""\
# two games
position startpos moves 7g7f 3c3d 8h2b+

sfen {ENDGAME} moves G*5b   # mate
"""


def test_a_usi_line_is_a_game() -> None:
    first, second = read_usi(USI_LINES)
    assert [move.usi for move in first.main_line] == ["7g7f", "3c3d", "8h2b+"]
    assert format_sfen(second.start) == ENDGAME
    assert [move.usi for move in second.main_line] == ["G*5b"]


@pytest.mark.parametrize("suffix", USI_SUFFIXES)
def test_usi_files(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"games{suffix.upper()}"
    path.write_text(USI_LINES, encoding="utf-8-sig")
    assert load_games(path) == read_usi(USI_LINES)
    with pytest.raises(NotationError, match=r"ends in one of \.csa .*; \.sfen, .* can be"):
        save_game(GameRecord(), path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: there is no game"),
        ("# nothing", "line 1: there is no game"),
        ("\nstartpos moves 7g7f 3c3", "line 2, column 21: move 2 of the list: '3c3'"),
        ("startpos moves 7g7e", "line 1, column 1: move 1, 7g7e: .*cannot go"),
        ("startpos\n4k4/9 b - 1", "line 2, column 1: the board has 2 ranks"),
    ],
)
def test_faults_in_usi_lines_have_a_place(text: str, message: str) -> None:
    with pytest.raises(NotationError, match=message):
        read_usi(text)
