"""The command line as a whole; each subcommand has its own tests."""

import io
import subprocess
import sys
from collections.abc import Callable

import pytest
import typer

from keisei import __version__, cli
from keisei.errors import KeiseiError


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "keisei", *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


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


def test_interrupt_exits_like_a_shell_command(
    run_main_with: Callable[[BaseException], object],
) -> None:
    assert run_main_with(KeyboardInterrupt()) == 130


def test_programming_errors_are_not_hidden(
    run_main_with: Callable[[BaseException], object],
) -> None:
    with pytest.raises(ZeroDivisionError):
        run_main_with(ZeroDivisionError())


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
