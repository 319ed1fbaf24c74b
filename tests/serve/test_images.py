"""Images come from one folder, whatever an item or a link says."""

import os

import pytest
from vetting_server import some_data

from trueup.exceptions import InvalidParameter
from trueup.serve.services import LARGEST_IMAGE, ImageFolder, Look

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "images"
    (root / "deep").mkdir(parents=True)
    (root / "a.png").write_bytes(PNG)
    (root / "deep" / "b.JPG").write_bytes(b"jpeg")
    (root / "drawing.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>")
    (root / "page.html").write_text("<script>alert(1)</script>")
    (tmp_path / "secret.png").write_bytes(b"secret")
    return root


@pytest.mark.parametrize(
    "name",
    ["../secret.png", "deep/../../secret.png", "", ".", "deep", "none.png", "page.html", "a.png\x00", "a" * 5000],
)
def test_what_is_outside_or_no_image_is_not(folder, name):
    with (folder / "none.png").open("wb") as stream:
        stream.truncate(LARGEST_IMAGE + 1)
    assert ImageFolder(folder).find(name) is None
    assert ImageFolder(folder).find(str(folder / name)) is None  # an absolute path
    with pytest.raises(InvalidParameter, match="must be a folder"):
        ImageFolder(folder / "none")


@pytest.mark.skipif(not hasattr(os, "symlink") or os.name == "nt", reason="links need rights on Windows")
def test_a_link_that_leads_out_is_not(folder, tmp_path):
    (folder / "out.png").symlink_to(tmp_path / "secret.png")
    (folder / "door").symlink_to(tmp_path)
    (folder / "in.png").symlink_to(folder / "a.png")
    found = ImageFolder(folder)
    assert found.find("out.png") is None
    assert found.find("door/secret.png") is None
    assert found.find("in.png") is not None


def test_cards_show_images_by_their_number(make_vetting, folder):
    n = 60
    names = ["a.png", "../secret.png", "drawing.svg"] * 20
    vetting = make_vetting(data=some_data(n, {"image": names}), look=Look(images=folder), n_items=n)
    ann = vetting.signed_in("ann")
    for card in vetting.storage.cards("q3"):
        answer = ann.get("/image", params={"card": card.number})
        name = names[vetting.services.labels.items.tolist().index(card.item)]
        if name == "a.png":
            assert (answer.status_code, answer.headers["content-type"], answer.content) == (200, "image/png", PNG)
        elif name == "drawing.svg":
            assert answer.headers["content-disposition"] == "attachment"
        else:
            assert answer.status_code == 404
    assert ann.get("/image?card=999").status_code == 404
