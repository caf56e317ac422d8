"""Messages about runs and stored results, in the language of the page.

Other packages write them in English, for the command line too. They are recognised by their
patterns, and told again; details of unknown kinds, as an exception's text, stay as they are.
"""

from typing import Final

from keisei.web.languages import ENGLISH, mark, page_language, retell, tr

MESSAGES: Final = (
    # keisei.evaluation.ladder: of several lines, with conditions in it
    mark("{file} holds no games with {conditions}; it holds{details}"),
    # keisei.runs.listing, keisei.runs.run_reader: what is wrong with a run
    mark("killed"),
    mark("{file} has no readable line yet"),
    mark("there is no {file} yet"),
    mark("a link leads out of {folder}: it is not followed"),
    mark("{file} leads out of {folder} and is not read"),
    mark("there is no run {name} in {folder}"),
    mark("cannot read {file}: {details}"),
    # keisei.runs.control
    mark("{name} is not paused"),
    mark("{name} is not training, so there is nothing to {command}"),
    # keisei.runs.notes
    mark("the note has {number} characters; {limit} are the limit"),
    mark("a run can have up to {limit} tags, not {number}"),
    mark("the tag {tag}... is longer than {limit} characters"),
    mark("cannot write {file}: {details}"),
    # keisei.runs.artifacts
    mark("there is no game {file} of {name}"),
    mark("{file} is not a regular file"),
    # keisei.evaluation.results
    mark("there are no results in {file}: the file is empty"),
    mark("{file} is the database of another program, not a result store"),
    mark("{file} has format version {version}, but this Keisei ({own}) reads up to version "
         "{newest}"),
    mark("cannot use {file}: {details}"),
    mark("it is not a result store"),
    mark("it is damaged"),
    mark("another process has locked it for {number} seconds"),
    mark("it cannot be opened or created"),
    # keisei.runs.control again: what is left
    mark("cannot {command} {name}: {details}"),
    # keisei.evaluation.results.Conditions
    mark("{plies} opening plies from {openings}, ply limit {limit}, declaration {rule}"),
    mark("{number} positions #{checksum}"),
    mark("points {number}"),
    # keisei.evaluation.rating_text
    mark("above the scale: {rating} or more"),
    mark("below the scale: {rating} or less"),
    # keisei.evaluation.ladder
    mark("scale {version}"),
    mark("rating 0 is {name}: {details}"),
    mark("no games connect it with a reference of the scale"),
    mark("the scale's games have {details}"),
    mark("left out, not connected by games: {details}"),
    mark("{number} games: {details}"),
)  # fmt: skip
"""Messages, with the places of what differs."""

_WORDS: Final = {
    "startpos": mark("the starting position"),
    "off": mark("not allowed"),
    "pause": mark("Pause"),
    "resume": mark("Resume"),
    "reset": mark("New games"),
}
"""Words of the settings that stand in such places; commands have the names of their buttons."""


def message_text(message: str) -> str:
    """Return a message about runs or results in the language of the page."""
    return message if page_language() == ENGLISH else _translated(message)


def _translated(text: str) -> str:
    if text in _WORDS:
        return tr(_WORDS[text])
    if text.startswith("\n"):  # a list
        return "\n".join(_translated(line.strip()) for line in text.split("\n"))
    return retell(text, MESSAGES, _translated) or text
