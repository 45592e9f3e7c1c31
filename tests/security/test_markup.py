"""The reader of pages that the other tests here rely on sees what it is to see."""

from __future__ import annotations

import pytest

from tests.security.markup import Page, faults

BAD = (
    "<zq1>",
    "<p zq=1>",
    "<p onclick=x>",
    "<p style='color: red'>",
    "<a href='javascript:x'>",
    "<a href=' java\nscript:x'>",
    "<a href='//elsewhere.example/'>",
    "<a href='\\\\elsewhere.example/'>",
    "<a href='data:text/html,x'>",
    "<a href='data:image/svg+xml;base64,PD94'>",
    "<form action='vbscript:x'>",
    "<p hx-get='https://elsewhere.example/'>",
    "<p hx-on:click='x'>",
    "<p hx-vals='js:{a: 1}'>",
    "<script>x</script>",
    "<script src='https://elsewhere.example/x.js'></script>",
    "<style>p {}</style>",
    "<iframe src='/'>",
    "<base href='/'>",
    "<!-- zq -->",
)
GOOD = (
    "<!doctype html><p class='q-n'>&lt;zq1&gt;</p>",
    "<a href='/models/?q=javascript:x'>",
    "<a href='https://github.com/'>",
    "<p title='&lt;zq1 onzq=1&gt;'>",
    "<img src='data:image/svg+xml;base64,PD94'>",
    "<script src='/static/js/app.js' defer></script>",
    "<script type='application/json'>{}</script>",
    "<meta name='htmx-config' content='{}'>",
)


@pytest.mark.parametrize("html", BAD)
def test_it_sees_what_runs_or_leads_away(html):
    assert faults(html)


@pytest.mark.parametrize("html", GOOD)
def test_it_leaves_the_rest_alone(html):
    assert not faults(html)


def test_texts_are_what_people_and_forms_get():
    found = Page("<p title='a &lt;b&gt;'>c &amp; d<input value='e'></p>").texts
    assert found == ["a <b>", "c & d", "e"]
