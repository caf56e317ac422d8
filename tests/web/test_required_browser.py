"""A browser that is missing makes tests fail where it is required, instead of skipping them."""

import os

import pytest

from tests.web.conftest import REQUIRE_BROWSER, require_browser


def test_a_missing_browser_is_noticed_where_it_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.devnull)
    monkeypatch.delenv(REQUIRE_BROWSER, raising=False)
    require_browser()
    monkeypatch.setenv(REQUIRE_BROWSER, "1")
    with pytest.raises(pytest.fail.Exception, match="Chromium"):
        require_browser()
