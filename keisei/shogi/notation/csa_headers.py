"""The headers of CSA files: ``N+``, ``N-``, ``$EVENT:`` and so on."""

import re
from collections.abc import Iterator, Mapping
from typing import Final, Literal

from keisei.errors import NotationError
from keisei.shogi.notation import headers as header
from keisei.shogi.notation.csa_position import Statement
from keisei.shogi.notation.text import text_lines

CsaVersion = Literal["2.2", "3.0"]

_KEY_BY_KEYWORD: Final = {
    "N+": header.BLACK,
    "N-": header.WHITE,
    "$EVENT": header.EVENT,
    "$SITE": header.SITE,
    "$START_TIME": header.START_TIME,
    "$END_TIME": header.END_TIME,
    "$OPENING": header.OPENING,
    "$TIME": header.TIME,
    "$TIME+": header.BLACK_TIME,
    "$TIME-": header.WHITE_TIME,
    "$MAX_MOVES": header.MAX_MOVES,
    "$JISHOGI": header.JISHOGI,
    "$NOTE": header.NOTE,
}
_KEYWORD_BY_KEY: Final = {key: keyword for keyword, key in _KEY_BY_KEYWORD.items()}
_ALIASES: Final = {"$TIMET+": "$TIME+", "$TIMET-": "$TIME-"}
"""The text of the 3.0 standard has these, its examples have the others."""

_TIME_LIMIT: Final = re.compile(r"([0-9]{1,4}):([0-5][0-9])\+([0-9]{1,4})")
_ESCAPE: Final = re.compile(r"\\(n|\\)")


def read_header(statement: Statement, headers: dict[str, str]) -> None:
    """Enter a header into `headers`; without a value it says nothing and is left out."""
    text = statement.text
    if text.startswith(("N+", "N-")):
        keyword, value = text[:2], text[2:]
    elif text.startswith("$") and text.find(":") > 1:
        keyword, _, value = text.partition(":")
    else:
        raise statement.error(
            f"{text[:16]!r} is no header; 'N+name', 'N-name' or '$EVENT:text' is expected"
        )
    value = value.strip()
    keyword = _ALIASES.get(keyword, keyword)
    key = _KEY_BY_KEYWORD.get(keyword, keyword.removeprefix("$").strip())
    if keyword == "$TIME_LIMIT" and (limit := _TIME_LIMIT.fullmatch(value)):
        main = int(limit[1]) * 3600 + int(limit[2]) * 60
        key, value = header.TIME, str(header.TimeLimit(main, int(limit[3])))
    if key == header.NOTE:
        value = _ESCAPE.sub(lambda escape: "\n" if escape[1] == "n" else "\\", value)
    if key and value:
        headers[key] = value


def header_lines(headers: Mapping[str, str], version: CsaVersion) -> Iterator[str]:
    """The lines of all headers, the standard ones first."""
    for key in header.in_order(headers):
        keyword, value = _KEYWORD_BY_KEY.get(key, f"${key}"), headers[key]
        if key == header.NOTE:
            value = value.replace("\\", "\\\\").replace("\n", "\\n")
        if key == header.TIME and version == "2.2":
            keyword, value = _time_limit_2_2(value)
        if not key or ":" in keyword or len(text_lines(f"{keyword}{value}")) > 1:
            raise NotationError(
                f"header {key!r} cannot be written: a name without ':' and a value of one line "
                "are needed"
            )
        yield f"{keyword}{'' if keyword in ('N+', 'N-') else ':'}{value}"


def _time_limit_2_2(value: str) -> tuple[str, str]:
    """``$TIME_LIMIT:00:25+30`` where that can say it, else the way of version 3.0."""
    limit = header.TimeLimit.parse(value)
    if limit is None or limit.increment or limit.main % 60 or limit.byoyomi > 99:
        return "$TIME", value
    hours, minutes = divmod(limit.main // 60, 60)
    return "$TIME_LIMIT", f"{hours:02}:{minutes:02}+{limit.byoyomi:02}"
