"""A USI engine that misbehaves on demand; run as a program by the tests of engines.

``usi_stub.py FAULT`` plays ``7g7f`` for Black and ``3c3d`` for White, whatever the position. FAULT
says what it does wrong, and where.
"""

import os
import signal
import subprocess
import sys
import time

OPTIONS = """\
option name Skill Level type spin default 20 min -20 max 20
option name Style type combo default Solid var Solid var Very Wild
option name OwnBook type check default false
option name Clear Hash type button
option name BookFile type string default <empty>
"""


def send(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def hang() -> None:
    while True:
        time.sleep(1)


def write_forever(stream: int, chunk: bytes) -> None:
    while True:
        os.write(stream, chunk)


def start_child() -> int:
    """A process of its own, which holds our pipes open."""
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]).pid


def start_orphan(*, nameless: bool) -> int:
    """A process in a session of its own, whose parent has ended; `nameless`: nor environment."""
    environment = ", env={}" if nameless else ""
    program = (
        "import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', "
        f"'import time; time.sleep(60)'], start_new_session=True, stdout=2{environment}).pid)"
    )
    return int(subprocess.check_output([sys.executable, "-c", program]))


def on_start(fault: str) -> None:
    if fault == "ignores-quit":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    elif fault == "hangs-at-start":
        hang()
    elif fault == "dies-at-start":
        sys.stderr.write("no evaluation file\n")
        sys.exit(3)
    elif fault == "stderr-flood":
        os.write(2, b"noise without an end of line" * 20_000)


def on_usi(fault: str) -> None:
    if fault == "hangs-at-usi":
        hang()
    elif fault == "endless-line":
        write_forever(1, b"x" * 4096)
    elif fault == "endless-options":
        write_forever(1, b"option name A type string\n" * 100)
    elif fault == "endless-thoughts":
        write_forever(1, b"info string hm\n" * 100)
    elif fault == "garbage":
        os.write(1, b"\xff\xfe\x00\x80\n\n \n")
    elif fault in ("has-a-child", "dies-and-leaves-a-child"):
        send(f"id name Parent of {start_child()}")
        send("usiok")
        return
    elif fault in ("has-an-orphan", "has-a-runaway"):
        send(f"id name Parent of {start_orphan(nameless=fault == 'has-a-runaway')}")
        send("usiok")
        return
    elif fault == "nameless":
        send("usiok")
        return
    send("id name Stub 1.0")
    sys.stdout.write(OPTIONS)
    send("usiok")


def on_go(fault: str, moves: int, seen: list[str]) -> None:
    move = "7g7f" if moves % 2 == 0 else "3c3d"
    if fault == "hangs-at-go" or (fault == "hangs-as-black" and moves % 2 == 0):
        send("info depth 1")
        hang()
    elif fault == "closes-output":
        os.close(1)
        hang()
    elif fault == "half-an-answer":
        os.write(1, b"bestmove 7g7f")
        hang()
    elif fault == "dies-at-go" or (fault == "dies-in-mid-game" and moves >= 2):
        send("info string assertion failed")
        os.kill(os.getpid(), signal.SIGKILL)
    elif fault == "dies-and-leaves-a-child":
        os._exit(7)
    elif fault == "last-words-count":
        send("bestmove 7g7f")
        sys.exit(0)
    elif fault == "late" and moves == 0:
        time.sleep(0.3)
    elif fault == "answers-twice":
        send(f"bestmove {move}")
        move = "resign"
    elif fault == "flood-after-answer":
        send(f"bestmove {move}")
        write_forever(1, b"bestmove 1a1b\n" * 100)
    elif fault == "garbage":
        os.write(1, b"bestmove \xff\xfe\n")
        return
    elif fault == "no-word":
        send("bestmove")
        return
    elif fault.startswith("plays-"):
        move = fault.removeprefix("plays-")
    elif fault == "tells-all":
        move = ",".join(line.replace(" ", "_") for line in seen)
        seen.clear()
    send(f"bestmove {move} ponder 1a1b")


def main() -> None:
    fault = sys.argv[1] if len(sys.argv) > 1 else ""
    on_start(fault)
    moves = 0
    seen: list[str] = []
    for line in sys.stdin:
        seen.append(line.strip())
        match line.split():
            case ["usi"]:
                on_usi(fault)
            case ["isready"]:
                if fault == "hangs-at-isready":
                    hang()
                if fault == "closes-input":
                    os.close(0)
                send("readyok")
                if fault in ("closes-input", "stops-reading"):
                    hang()
            case ["position", *words]:
                moves = len(words) - words.index("moves") - 1 if "moves" in words else 0
            case ["go", *_]:
                on_go(fault, moves, seen)
            case ["quit"] if fault != "ignores-quit":
                return
    if fault == "ignores-quit":
        hang()


if __name__ == "__main__":
    main()
