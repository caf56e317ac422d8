"""Reading a file that grows: every complete line once, and nothing of a replaced file."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from keisei.runs.journal import JournalReader


def reader_of(path: Path) -> JournalReader:
    return JournalReader(lambda: path.open("rb"))


def complete(reader: JournalReader, max_bytes: int = 100) -> list[bytes]:
    return [line for line in reader.read(max_bytes).lines if line]


def test_only_complete_lines_are_returned(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"one\ntw")
    reader = reader_of(path)
    assert complete(reader) == [b"one"]
    assert complete(reader) == []
    with path.open("ab") as file:
        file.write(b"o\nthree\n")
    assert complete(reader) == [b"two", b"three"]
    assert complete(reader) == []


@given(st.lists(st.binary(max_size=30).map(lambda line: line.replace(b"\n", b"")), max_size=40),
       st.lists(st.integers(0, 60), max_size=30))  # fmt: skip
def test_every_line_is_returned_once_however_it_is_written(
    lines: list[bytes], cuts: list[int]
) -> None:
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
            found += complete(reader, 50)
        while more := reader.read(50):
            found += [line for line in more.lines if line]
            if more.bytes_left == 0:
                break
    assert found == [line for line in lines if line]


def test_a_chunk_ends_with_a_line(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"aaaa\nbbbb\ncccc\n")
    reader = reader_of(path)
    first = reader.read(7)
    assert (first.lines, first.bytes_left) == ([b"aaaa"], 10)
    assert complete(reader, 7) == [b"bbbb"]


def test_a_line_that_is_too_long_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 1000 + b"\nlast\n")
    reader = reader_of(path)
    found = []
    for _ in range(20):
        found += complete(reader, 100)
    assert found[-1] == b"last"


def test_a_file_that_was_cut_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"one\ntwo\nthree\n")
    reader = reader_of(path)
    reader.read()
    path.write_bytes(b"one\n")
    found = reader.read()
    assert found.is_restarted
    assert found.lines == [b"one"]


def test_a_file_that_was_replaced_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"one\ntwo\n")
    reader = reader_of(path)
    reader.read()
    aside = tmp_path / "aside"
    aside.write_bytes(b"one\ntwo\nthree\n")
    aside.replace(path)
    assert reader.read().lines[:3] == [b"one", b"two", b"three"]


def test_a_file_that_was_written_over_is_read_again(tmp_path: Path) -> None:
    """The same file, longer than before, but with another beginning."""
    path = tmp_path / "file"
    path.write_bytes(b"one\ntwo\n")
    reader = reader_of(path)
    reader.read()
    with path.open("r+b") as file:
        file.write(b"six\nten\nmore\n")
    found = reader.read()
    assert found.is_restarted
    assert found.lines == [b"six", b"ten", b"more"]


def test_a_file_that_only_grows_is_not_read_again(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"one\n")
    reader = reader_of(path)
    for _ in range(5):
        reader.read()
        with path.open("ab") as file:
            file.write(b"more\n")
        assert not reader.read().is_restarted
