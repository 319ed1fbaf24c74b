"""The app in a real browser, with its policy of content in force: people, keys, tabs, lost connections, and axe."""

import os
from pathlib import Path

import pytest
from tile_search_server import NAME, tile_search
from vetting_server import wait_for

from trueup.serve.guard import Address
from trueup.serve.running import demo_data

__all__ = ["tile_search"]
pytestmark = pytest.mark.browser
GUARD = 320  # milliseconds after a change of card in which keys do nothing


@pytest.fixture
def open_page(chromium):
    """Opens pages in browsers of their own; anything that a page complains of is a failure."""
    contexts, complaints = [], []

    def open_one(address=None, *, width=1100, scheme="light", context=None, watch=True):
        if context is None:
            context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
            context.set_default_timeout(60_000)
            contexts.append(context)
        page = context.new_page()
        if watch:
            page.on("console", lambda message: complaints.append(message.text))
            page.on("pageerror", lambda error: complaints.append(str(error)))
        if address is not None:
            page.goto(address)
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert complaints == []


def enter(open_page, vetting, address, name, role="expert", **how):
    page = open_page(address + "enter?key=" + vetting.services.access.give("link", name, role), **how)
    page.get_by_role("button", name="Open the session").click()
    page.wait_for_selector("#live" if role == "owner" else ".card")
    return page


def card_of(page):
    return page.get_attribute("[data-card]", "data-card")


def answer(page, key):
    """Press a key and wait for the next card."""
    before = card_of(page)
    page.wait_for_timeout(GUARD)
    page.keyboard.press(key)
    page.wait_for_selector(f'.card:not([data-card="{before}"])')
    page.wait_for_selector("#state:has-text('Saved.')")
    return before


def told(vetting):
    return [event for event in vetting.storage.events("q3") if event.kind != "ask"]


def test_two_experts_and_an_owner(make_vetting, listening, open_page):
    vetting = make_vetting()
    address = listening(vetting)
    ann, bob = (enter(open_page, vetting, address, name) for name in ("ann", "bob"))
    owner = enter(open_page, vetting, address, "owner", "owner")
    assert card_of(ann) != card_of(bob)
    for key in ("1", "0", "0", "1"):  # the classes are 0 and 1: each has its own digit
        for page in (ann, bob):
            answer(page, key)
    answer(ann, "c")
    answer(ann, "n")
    answer(ann, "l")
    kinds = [event.kind for event in told(vetting) if event.who == "ann"]
    assert kinds == ["tell"] * 4 + ["cannot tell", "none of these", "later"]
    said = [event.truth for event in told(vetting) if event.who == "bob"]
    assert said == [1, 0, 0, 1]
    # The counter counts what is saved, also on load and after another server has started.
    count = ann.locator(".count").inner_text()
    assert count.startswith("6 answered by you")
    vetting.services.journal._entries.clear()
    vetting.services.journal._by_person.clear()
    vetting.services.journal._by_item.clear()
    ann.reload()
    assert ann.locator(".count").inner_text() == count
    assert all(event.seconds > 0.2 for event in told(vetting))
    # The page of the owner moves by itself.
    owner.wait_for_selector("#link-state:has-text('live')")
    owner.wait_for_selector(".figure:has-text('Answers') .big:has-text('9')")
    owner.wait_for_selector("li:has-text('1 cannot tell')")
    owner.wait_for_selector("#recent td:has-text('later')")


def test_refresh_back_and_a_second_tab_show_the_same_card(make_vetting, listening, open_page):
    vetting = make_vetting()
    address = listening(vetting)
    page = enter(open_page, vetting, address, "ann")
    answer(page, "1")
    now = card_of(page)
    page.reload()
    assert card_of(page) == now
    page.goto(address + "enter?key=another")
    page.go_back()
    page.wait_for_selector(f'[data-card="{now}"]')
    tab = open_page(address, context=page.context)
    assert card_of(tab) == now
    answer(tab, "0")
    page.wait_for_timeout(GUARD)
    page.keyboard.press("0")  # the same answer from the tab that was left behind
    page.wait_for_selector(f'.card:not([data-card="{now}"])')
    assert len(told(vetting)) == 2


def test_keys_do_nothing_in_fields_when_held_down_and_right_after_a_change(make_vetting, listening, open_page):
    vetting = make_vetting()
    page = enter(open_page, vetting, listening(vetting), "ann")
    page.wait_for_timeout(GUARD)
    page.keyboard.press("m")
    page.keyboard.type("12 looks odd")
    assert page.input_value("#comment") == "12 looks odd"
    page.keyboard.press("Escape")
    assert told(vetting) == []
    first = card_of(page)
    page.evaluate(  # a key in the moment of the change, however busy the machine is
        """() => new MutationObserver((_, watch) => {
            watch.disconnect();
            document.dispatchEvent(new KeyboardEvent("keydown", { key: "0" }));
        }).observe(document.getElementById("place"), { childList: true })"""
    )
    page.keyboard.down("1")
    page.keyboard.down("1")  # the browser says that it is a repeat
    page.wait_for_selector(f'.card:not([data-card="{first}"])')
    page.keyboard.down("1")
    page.keyboard.up("1")
    page.wait_for_timeout(GUARD)
    page.wait_for_selector("#ignored:has-text('key 0 did nothing')")
    assert [(event.truth, event.text) for event in told(vetting)] == [(1, "12 looks odd")]
    page.uncheck("#keys")
    page.keyboard.press("1")
    page.wait_for_timeout(GUARD)
    assert len(told(vetting)) == 1
    page.check("#keys")
    held = []
    page.route("**/reply", lambda route: held.append(route))  # saving takes long
    page.locator("body").press("1")
    wait_for(lambda: held or page.wait_for_timeout(20))
    page.keyboard.press("0")
    page.wait_for_selector("#ignored:has-text('key 0 did nothing')")
    held[0].continue_()
    page.wait_for_selector("#state:has-text('Saved.')")
    assert "key 0 did nothing" in page.locator("#ignored").inner_text()
    assert [event.truth for event in told(vetting)] == [1, 1]


def test_answers_survive_a_lost_connection_and_a_reload(make_vetting, listening, open_page):
    vetting = make_vetting()
    address = listening(vetting)
    page = enter(open_page, vetting, address, "ann", watch=False)  # a browser logs that it is offline
    answer(page, "0")
    page.wait_for_timeout(GUARD)
    page.context.set_offline(True)
    page.keyboard.press("1")
    page.wait_for_selector("#state:has-text('1 not saved yet')")
    page.wait_for_selector("#trouble:has-text('No connection')")
    assert len(told(vetting)) == 1
    page.context.set_offline(False)
    page.wait_for_selector("#state:has-text('Everything is saved')")
    assert [event.truth for event in told(vetting)] == [0, 1]
    # The answer comes through but the reply does not: it is sent again, and counts once.
    lost = []
    page.route("**/reply", lambda route: (lost.append(route.fetch()), route.abort()) if not lost else route.continue_())
    now = card_of(page)
    page.wait_for_timeout(GUARD)
    page.keyboard.press("0")
    page.wait_for_selector(f'.card:not([data-card="{now}"])')
    assert [event.truth for event in told(vetting)] == [0, 1, 0]
    # A page that is left with an answer unsent sends it when it is opened again.
    page.unroute("**/reply")
    page.route("**/reply", lambda route: route.abort())
    page.wait_for_timeout(GUARD)
    page.keyboard.press("1")
    page.wait_for_selector("#state:has-text('1 not saved yet')")
    page.on("dialog", lambda dialog: dialog.accept())
    page.unroute("**/reply")
    page.goto(address)
    wait_for(lambda: len(told(vetting)) == 4)
    assert [event.truth for event in told(vetting)] == [0, 1, 0, 1]


def test_pages_are_accessible_and_fit(make_vetting, listening, open_page):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="it is part of trueup[dev]").Axe()
    predictions, labels = demo_data(150)
    vetting = make_vetting(data=(predictions, labels, {}), half_width=0.03)
    address = listening(vetting)
    zoe = vetting.signed_in("zoe")
    placed = zoe.get("/next").json()["card"]
    for k in range(12):
        sent = {"card": placed, "choice": str(k % 3), "key": f"{k}", "comment": "Not sure." * (k == 9), "seconds": 4}
        placed = zoe.post("/reply", json=sent).json()["card"]
    wait_for(lambda: vetting.services.latest.snapshot.n_answers == 12)
    link = open_page(address + "enter?key=" + vetting.services.access.give("link", "ann", "expert"))
    owner = enter(open_page, vetting, address, "owner", "owner")
    pages = {"link": link, "owner": owner, "card": open_page(address, context=owner.context)}
    folder = os.environ.get("TRUEUP_SCREENSHOTS")
    for name, page in pages.items():
        for width, scheme in [(390, "dark"), (320, "light"), (1100, "dark"), (1100, "light")]:  # 320: 640 at 200%
            page.set_viewport_size({"width": width, "height": 600})
            page.emulate_media(color_scheme=scheme)
            if (width, scheme) in [(390, "dark"), (1100, "light")]:
                found = axe.run(page)  # it is put into the page by the debugger, not by the page
                assert found.violations_count == 0, found.generate_report()
            wide = page.evaluate("() => document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert wide <= 0, f"the page {name} scrolls sideways at {width}"
            if folder:
                page.screenshot(path=Path(folder) / f"{name}-{width}-{scheme}.png", full_page=True)


def test_a_keyboard_reaches_everything_and_leaves_again(make_vetting, listening, open_page):
    vetting = make_vetting()
    page = enter(open_page, vetting, listening(vetting), "ann")
    reached = []
    for _ in range(16):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("() => document.activeElement.id || document.activeElement.value || ''"))
    assert {"0", "1", "later", "cannot-tell", "none-of-these", "undo", "comment", "keys"} <= set(reached)


def test_tiles_are_seen_and_counted_with_keys(tile_search, listening, open_page):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="it is part of trueup[dev]").Axe()
    vetting, _, _ = tile_search
    page = enter(open_page, vetting, listening(vetting), "ann")
    page.wait_for_function(
        "() => { const i = document.querySelector('.frame img'); return i.complete && i.naturalWidth }"
    )
    found = axe.run(page)
    assert found.violations_count == 0, found.generate_report()
    if folder := os.environ.get("TRUEUP_SCREENSHOTS"):
        page.screenshot(path=Path(folder) / "tile.png", full_page=True)
    for key in ("0", "3", "1"):
        answer(page, key)
    page.select_option("#all-classes", "12")
    before = card_of(page)
    page.get_by_role("button", name="Choose").click()
    page.wait_for_selector(f'.card:not([data-card="{before}"])')
    said = [event.truth for event in vetting.storage.events(NAME) if event.kind == "tell"]
    assert said == [0, 3, 1, 12]


@pytest.mark.parametrize("strips", [True, False])
def test_it_works_under_a_path_behind_a_proxy(make_vetting, listening, open_page, proxy, strips):
    prefix = "/team/vetting"
    vetting = make_vetting(address=Address(prefix=prefix))
    address = proxy(listening(vetting), prefix, strips=strips)
    page = enter(open_page, vetting, address, "ann")
    answer(page, "1")
    owner = enter(open_page, vetting, address, "owner", "owner")
    owner.wait_for_selector(".figure:has-text('Answers') .big:has-text('1')")
    assert page.url == address
    assert len(told(vetting)) == 1
