"""The sound files are small, and what the script makes."""

import wave

import pytest

from tests.scripts import load_script


def test_sounds_are_short_and_as_made(monkeypatch: pytest.MonkeyPatch) -> None:
    script = load_script("make_sounds", monkeypatch)
    made = {name: script.wav(samples) for name, samples in script.sounds().items()}
    assert {path.stem for path in script.SOUNDS.glob("*.wav")} == set(made)
    for name, data in made.items():
        file = script.SOUNDS / f"{name}.wav"
        assert file.stat().st_size == len(data) < 32_000
        with wave.open(str(file)) as sound:
            assert sound.getnframes() / sound.getframerate() < 1.0
