"""The command line as a whole; each subcommand has its own tests."""

import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer

from keisei import __version__, cli
from keisei.errors import KeiseiError

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="names are text on Windows")
MOVES = "PI\n+\n+7776FU\n-3334FU\n%TORYO\n"


def run(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    options = {"stdout": subprocess.PIPE, **options}
    return subprocess.run(
        [sys.executable, "-m", "keisei", *arguments],
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        check=False,
        **options,
    )


def the_error(result: subprocess.CompletedProcess[str]) -> str:
    """Return the message of a user error: one line on stderr, exit code 2."""
    assert (result.returncode, result.stdout or "") == (cli.USER_ERROR, ""), result.stderr
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ")
    return line.removeprefix("error: ")


def test_version_is_printed() -> None:
    result = run("--version")
    assert (result.returncode, result.stdout) == (0, f"keisei {__version__}\n")


def test_help_names_the_subcommands() -> None:
    result = run("--help")
    assert result.returncode == 0
    assert "doctor" in result.stdout


@pytest.mark.parametrize("arguments", [["no-such-command"], ["doctor", "--no-such-option"]])
def test_wrong_usage_exits_with_2(arguments: list[str]) -> None:
    result = run(*arguments)
    assert result.returncode == cli.USER_ERROR
    assert "Traceback" not in result.stderr


def test_start_up_leaves_the_heavy_packages_alone() -> None:
    program = "import sys, keisei.cli; print({'numba', 'numpy', 'torch'} & set(sys.modules))"
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert result.stdout == "set()\n"


@pytest.fixture
def run_main_with(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], object]:
    """Run `main` on a command that raises; return its exit code."""

    def run_main(error: BaseException) -> object:
        app = typer.Typer(pretty_exceptions_enable=False)

        @app.command()
        def fail() -> None:
            raise error

        monkeypatch.setattr(cli, "app", app)
        monkeypatch.setattr(sys, "argv", ["keisei"])
        with pytest.raises(SystemExit) as exit_info:
            cli.main()
        return exit_info.value.code

    return run_main


def test_user_errors_are_one_line_without_traceback(
    run_main_with: Callable[[BaseException], object], capsys: pytest.CaptureFixture[str]
) -> None:
    code = run_main_with(KeiseiError("no such file: [bold]games.kif"))
    assert code == cli.USER_ERROR
    assert capsys.readouterr().err == "error: no such file: [bold]games.kif\n"


@pytest.mark.parametrize(
    "error",
    [MemoryError(), RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you")],
    ids=["of Python", "of torch"],
)
def test_too_little_memory_is_one_line(
    error: Exception,
    run_main_with: Callable[[BaseException], object],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Before, it was a traceback."""
    if not isinstance(error, MemoryError):
        pytest.importorskip("torch")
    assert run_main_with(error) == cli.USER_ERROR
    printed = capsys.readouterr().err
    assert printed.startswith("error: there is not enough memory")
    assert printed.count("\n") == 1


def test_interrupt_exits_like_a_shell_command(
    run_main_with: Callable[[BaseException], object],
) -> None:
    assert run_main_with(KeyboardInterrupt()) == 130


def test_programming_errors_are_not_hidden(
    run_main_with: Callable[[BaseException], object],
) -> None:
    with pytest.raises(ZeroDivisionError):
        run_main_with(ZeroDivisionError())
    with pytest.raises(RuntimeError):
        run_main_with(RuntimeError("a bug"))


def test_kanji_can_be_redirected_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    redirected = io.TextIOWrapper(written, encoding="cp1252")
    monkeypatch.setattr(sys, "stdout", redirected)
    monkeypatch.setattr(sys, "argv", ["keisei", "--version"])
    with pytest.raises(SystemExit):
        cli.main()
    redirected.write("玉")
    redirected.flush()
    assert written.getvalue().decode("utf-8").endswith("玉")


@pytest.mark.parametrize("path", [".", "", "file/board.svg"])
def test_pictures_that_cannot_be_written_are_one_line(path: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    error = the_error(run("show", "--svg", path, cwd=tmp_path))
    assert error.startswith(f"cannot write {Path(path)}: ")


def test_game_files_that_cannot_be_read_are_one_line(tmp_path: Path) -> None:
    """Long lines are not wrapped at 80 columns."""
    missing = tmp_path / f"{'long-' * 20}name.kif"
    folder = tmp_path / "folder.kif"
    folder.mkdir()
    target = tmp_path / "out.csa"
    for source in (missing, folder):
        error = the_error(run("convert", str(source), str(target)))
        assert error.startswith(f"cannot read {source}: ")
    assert not target.exists()


def test_game_files_that_cannot_be_written_are_one_line(tmp_path: Path) -> None:
    source, target = tmp_path / "game.csa", tmp_path / "folder.csa"
    source.write_text(MOVES)
    target.mkdir()
    error = the_error(run("convert", str(source), str(target)))
    assert error.startswith(f"cannot write {target}: ")


def test_game_files_of_others_are_explained(tmp_path: Path) -> None:
    source = tmp_path / "game.csa"
    source.write_text(MOVES)
    source.chmod(0)
    if os.access(source, os.R_OK):
        pytest.skip("this user may read everything")
    result = run("convert", str(source), str(tmp_path / "out.csa"))
    assert (result.returncode, result.stdout) == (cli.USER_ERROR, "")
    assert "Traceback" not in result.stderr


@posix_only
def test_names_that_are_not_text_can_be_complained_about(tmp_path: Path) -> None:
    error = the_error(run("convert", os.fsdecode(b"\xff.kif"), "out.csa", cwd=tmp_path))
    assert error.startswith("cannot read \\udcff.kif: ")


@pytest.mark.skipif(sys.platform != "linux", reason="file names are text here")
def test_names_that_are_not_text_can_be_reported(tmp_path: Path) -> None:
    name = os.fsdecode(b"\xff.csa")
    (tmp_path / name).write_text(MOVES)
    result = run("convert", name, "out.kif", cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == "1 game, 2 moves: \\udcff.csa -> out.kif\n"


def test_positions_that_cannot_be_read_are_one_line() -> None:
    assert "an SFEN has a board" in the_error(run("perft", "--sfen", "nonsense"))


def test_numbers_out_of_range_are_wrong_usage() -> None:
    result = run("perft", "--depth", "21")
    assert (result.returncode, result.stdout) == (cli.USER_ERROR, "")
    assert "--depth" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a disk that is always full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("arguments", [["--version"], ["--help"]])
def test_a_full_disk_is_one_line(arguments: list[str], unbuffered: str) -> None:
    with Path("/dev/full").open("wb") as full:
        environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
        error = the_error(run(*arguments, stdout=full, env=environment))
    assert error == "cannot write the output: No space left on device"


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_has_gone_is_no_bug(unbuffered: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    result = run("--version", stdout=writer, env={**os.environ, "PYTHONUNBUFFERED": unbuffered})
    os.close(writer)
    assert result.returncode in (1, cli.USER_ERROR)
    assert "Traceback" not in result.stderr
    assert "Exception ignored" not in result.stderr


LONG_NAME = "x" * 300


@pytest.mark.skipif(sys.platform == "win32", reason="Windows reports such names in other ways")
@pytest.mark.parametrize(
    "arguments",
    [
        ["train", "--resume", LONG_NAME],
        ["train", "--config", LONG_NAME],
        ["train", "--name", LONG_NAME, "--set", "run.root=RUNS"],
        ["train", "--set", f"run.start_from={LONG_NAME}", "--set", "run.root=RUNS"],
        ["control", LONG_NAME, "pause"],
        ["play", LONG_NAME, "--terminal"],
        ["play", "--runs", LONG_NAME, "--no-browser"],
        ["play", "--games", LONG_NAME, "--no-browser"],
        ["models", LONG_NAME],
        ["usi", LONG_NAME],
        ["dashboard", LONG_NAME, "--no-browser"],
        ["runs", LONG_NAME],
        ["sweep", LONG_NAME],
        ["match", LONG_NAME, "random"],
        ["match", f"{LONG_NAME}.onnx", "random"],
        ["match", "random", "random", "--games-dir", LONG_NAME, "--games", "2"],
        ["ladder", LONG_NAME, "random"],
        ["evaluate", LONG_NAME],
        ["export", LONG_NAME],
        ["export", "builtin", "--output", f"{LONG_NAME}.keisei"],
        ["describe", "--config", LONG_NAME],
        ["bench", LONG_NAME],
        ["show", "--svg", f"{LONG_NAME}.svg"],
        ["convert", f"{LONG_NAME}.kif", "game.csa"],
        ["convert", "game.kif", f"{LONG_NAME}.csa"],
        ["annotate", f"{LONG_NAME}.kif", "--model", "builtin"],
        ["tsume", "--generate", "1", "--games", LONG_NAME],
        ["tsume", "--browser", "--problems", LONG_NAME],
        ["benchmark", "curve", LONG_NAME],
        ["benchmark", "strength", "--config", LONG_NAME],
    ],
    ids=lambda arguments: " ".join(arguments).replace(LONG_NAME, "NAME"),
)
def test_names_that_are_too_long_are_one_line(
    arguments: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("game.kif").write_text("手合割：平手\n   1 ７六歩(77)\n", encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["keisei", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == cli.USER_ERROR
    assert "File name too long" in capsys.readouterr().err.splitlines()[-1]
