"""The page of cards in a real browser: keys answer candidates and tiles, marks can be set and taken back."""

import json

import pytest

from trueup.detection import make_deck, match, save_cards, simulate_boxes, take_answers

pytestmark = pytest.mark.browser


def press(browser, key):
    browser.evaluate(f"document.dispatchEvent(new KeyboardEvent('keydown', {{ key: {json.dumps(key)} }}))")


def click_in_tile(browser, x, y):
    """Click at a place of the image, in its pixels."""
    browser.evaluate(
        f"""(() => {{
          const svg = cards[now].querySelector('svg');
          const at = new DOMPoint({x}, {y}).matrixTransform(svg.getScreenCTM());
          svg.dispatchEvent(new MouseEvent('click', {{ clientX: at.x, clientY: at.y, bubbles: true }}));
        }})()"""
    )


def test_a_vetter_answers_with_keys_and_marks(browser, tmp_path):
    data = simulate_boxes(n_images=6, n_annotators=3, random_state=0)
    deck = make_deck(match(data.found, data.objects), n_candidates=2, n_planted=0, n_tiles=3, n_hidden=0)
    browser.resize(900)
    browser.open(save_cards(deck, tmp_path / "cards.html"))
    press(browser, "y")
    press(browser, "n")
    press(browser, "4")  # a number is enough for a tile
    x, y, width, height = deck.cards[3].box.tolist()
    click_in_tile(browser, x + width / 2, y + height / 2)
    click_in_tile(browser, x + width / 4, y + height / 4)
    click_in_tile(browser, x + width / 4, y + height / 4)  # taken back
    press(browser, "Enter")
    press(browser, "0")
    answers = browser.evaluate("answers")
    assert (answers["1"], answers["2"], answers["3"], answers["5"]) == ("yes", "no", 4, 0)
    assert len(answers["4"]) == 1
    vetted = take_answers(deck, answers)
    assert (vetted.missed.n_seen, vetted.missed.n_searched, len(vetted.labels.gold)) == (5, 3, 2)
    press(browser, "ArrowLeft")
    press(browser, "ArrowLeft")
    assert browser.evaluate("cards[now].querySelector('.told').textContent") == "You said 4."
    press(browser, "Enter")
    assert browser.evaluate("answers['3']") == 4  # looking again changes nothing
    assert browser.complaints == []
