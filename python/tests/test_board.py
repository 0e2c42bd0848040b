"""``surefoot.board`` and runs in notebooks."""

from __future__ import annotations

import urllib.error
import urllib.request
from pathlib import Path

import pytest

import surefoot


def test_a_board_serves_until_it_is_stopped(tmp_path: Path) -> None:
    board = surefoot.board(tmp_path, port=0)
    try:
        with urllib.request.urlopen(f"{board.url}api/runs") as answer:
            assert b'"runs":[]' in answer.read()
        assert f'<iframe src="{board.url}"' in board._repr_html_()
    finally:
        board.stop()
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(board.url)


def test_a_wrong_path_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="mysql://: expected a directory"):
        surefoot.board("mysql://me:secret@db/x", port=0)


def test_a_recorded_run_is_shown_in_a_notebook(tmp_path: Path) -> None:
    session = surefoot.Session({}, framework="pytorch", runs=tmp_path, on_finding="ignore", name="<b>")
    for _ in range(5):
        session.step(0.5)
    session.finish(completed=True)
    page = session._repr_html_()
    assert page is not None
    assert page.startswith('<iframe srcdoc="&lt;!DOCTYPE html&gt;') and 'sandbox=""' in page
    assert surefoot.Session({}, framework="pytorch")._repr_html_() is None
