"""Make the sounds of the board: a piece on wood, a capture, the clock's last seconds, the end.

    python scripts/make_sounds.py

writes ``keisei/web/static/sounds/*.wav``, mono, 16 kHz, 16 bits, the same bytes on every machine.
"""

import io
import wave
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

SOUNDS: Final = Path(__file__).parents[1] / "keisei" / "web" / "static" / "sounds"
RATE: Final = 16_000

Samples = npt.NDArray[np.float64]


def knock(pitch: float, seconds: float, *, seed: int) -> Samples:
    """Return a piece that is set down: a burst of noise, and the wood that rings for a moment."""
    time = np.arange(int(RATE * seconds)) / RATE
    noise = np.random.default_rng(seed).uniform(-1, 1, time.size) * np.exp(-time * 700)
    wood = np.sin(2 * np.pi * pitch * time) * np.exp(-time * 90)
    high = np.sin(2 * np.pi * 2.7 * pitch * time) * np.exp(-time * 160)
    return 0.5 * noise + 0.5 * wood + 0.25 * high


def tone(pitch: float, seconds: float, decay: float) -> Samples:
    """Return a bell-like tone that starts softly."""
    time = np.arange(int(RATE * seconds)) / RATE
    waves = np.sin(2 * np.pi * pitch * time) + 0.3 * np.sin(4 * np.pi * pitch * time)
    return 0.4 * waves * np.exp(-time * decay) * np.minimum(1, time * 200)


def sounds() -> dict[str, Samples]:
    """Return the samples of each sound, from -1 to 1."""
    capture = knock(900, 0.12, seed=2)
    capture[: RATE // 50] *= 0.5
    capture[RATE // 40 :] += knock(620, 0.12, seed=3)[: capture.size - RATE // 40]
    end = tone(523.25, 0.7, 6)
    end[RATE // 6 :] += tone(392.0, 0.7, 6)[: end.size - RATE // 6]
    return {
        "move": knock(820, 0.09, seed=1),
        "capture": capture,
        "clock": 0.5 * tone(1046.5, 0.1, 40),
        "end": end,
    }


def wav(samples: Samples) -> bytes:
    """Return a WAV file; rounded, so that it does not depend on the machine's last bits."""
    loud = np.round(samples / max(1.0, np.abs(samples).max()) * 0.7, 3)
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(RATE)
        writer.writeframes((loud * 32767).astype("<i2").tobytes())
    return file.getvalue()


def main() -> None:
    """Write the files."""
    SOUNDS.mkdir(exist_ok=True)
    for name, samples in sounds().items():
        (SOUNDS / f"{name}.wav").write_bytes(wav(samples))


if __name__ == "__main__":
    main()
