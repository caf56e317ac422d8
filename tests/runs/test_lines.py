"""Reading a file that grows: every whole line once, and nothing of a file that is gone."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from keisei.runs.journal import LineReader


def reader_of(path: Path) -> LineReader:
    return LineReader(lambda: path.open("rb"))


def whole(reader: LineReader, most: int = 100) -> list[bytes]:
    return [line for line in reader.read(most).lines if line]


def test_only_whole_lines_are_handed_out(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"one\ntw")
    reader = reader_of(path)
    assert whole(reader) == [b"one"]
    assert whole(reader) == []
    with path.open("ab") as file:
        file.write(b"o\nthree\n")
    assert whole(reader) == [b"two", b"three"]
    assert whole(reader) == []


@given(st.lists(st.binary(max_size=30).map(lambda line: line.replace(b"\n", b"")), max_size=40),
       st.lists(st.integers(0, 60), max_size=30))  # fmt: skip
def test_however_it_is_written_every_line_comes_once(lines: list[bytes], cuts: list[int]) -> None:
    import tempfile

    data = b"".join(line + b"\n" for line in lines)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "file"
        path.write_bytes(b"")
        reader = reader_of(path)
        found: list[bytes] = []
        for size in [*cuts, len(data)]:
            with path.open("ab") as file:
                file.write(data[:size])
            data = data[size:]
            found += whole(reader, 50)
        while more := reader.read(50):
            found += [line for line in more.lines if line]
            if more.left == 0:
                break
    assert found == [line for line in lines if line]


def test_a_piece_ends_with_a_line(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"aaaa\nbbbb\ncccc\n")
    reader = reader_of(path)
    first = reader.read(7)
    assert (first.lines, first.left) == ([b"aaaa"], 10)
    assert whole(reader, 7) == [b"bbbb"]


def test_a_line_without_an_end_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 1000 + b"\nlast\n")
    reader = reader_of(path)
    found = []
    for _ in range(20):
        found += whole(reader, 100)
    assert found[-1] == b"last"


def test_a_file_that_was_cut_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"one\ntwo\nthree\n")
    reader = reader_of(path)
    reader.read()
    path.write_bytes(b"one\n")
    found = reader.read()
    assert found.is_anew
    assert found.lines == [b"one"]


def test_a_file_that_was_replaced_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"one\ntwo\n")
    reader = reader_of(path)
    reader.read()
    aside = tmp_path / "aside"
    aside.write_bytes(b"one\ntwo\nthree\n")
    aside.replace(path)
    assert reader.read().lines[:3] == [b"one", b"two", b"three"]


def test_a_file_that_was_written_over_is_read_anew(tmp_path: Path) -> None:
    """The same file, longer than before, but with another beginning."""
    path = tmp_path / "file"
    path.write_bytes(b"one\ntwo\n")
    reader = reader_of(path)
    reader.read()
    with path.open("r+b") as file:
        file.write(b"six\nten\nmore\n")
    found = reader.read()
    assert found.is_anew
    assert found.lines == [b"six", b"ten", b"more"]


def test_a_file_that_only_grows_is_not_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"one\n")
    reader = reader_of(path)
    for _ in range(5):
        reader.read()
        with path.open("ab") as file:
            file.write(b"more\n")
        assert not reader.read().is_anew
