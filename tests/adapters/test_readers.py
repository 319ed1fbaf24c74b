import pytest
from tool_files import label_studio_tasks, write_json

import trueup as tu
from trueup.adapters import export_format
from trueup.exceptions import InvalidFile, InvalidParameter

VOTES = "item,labeler,label\n1,ann,a\n1,bob,b\n2,ann,b\n"


def test_one_file_opens_all_doors(tmp_path):
    path = write_json(tmp_path / "export.json", label_studio_tasks())
    labels = tu.read_labels(path)
    assert tu.read_gold(path) == labels.gold == {2: "good"}
    assert tu.read_gold(path, drawn="random").drawn == "random"
    assert tu.read_predictions(path).align(labels).codes.shape == (1, 6)
    assert tu.evaluate(tu.read_predictions(path), labels, noise="majority", method="majority")["accuracy"].mean >= 0


def test_a_plain_table_stays_one(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text(VOTES, encoding="utf-8")
    assert export_format(path) is None
    assert tu.read_labels(path).n_votes == 3
    # also if it has the columns of a tool, as long as it has the column of items
    path.write_text(
        "item,labeler,label,annotation_id,annotator,lead_time\n1,a,x,1,1,1\n1,b,y,2,2,1\n", encoding="utf-8"
    )
    assert tu.read_labels(path).n_votes == 2
    with pytest.raises(InvalidParameter):
        tu.read_labels(path, question="x")
    with pytest.raises(InvalidParameter):
        tu.read_labels(path, keep_names=True)


def test_what_is_said_of_classes_holds_for_exports(tmp_path):
    path = write_json(tmp_path / "export.json", label_studio_tasks())
    labels = tu.read_labels(path, classes=["good", "bad", "odd"], abstain_policy="answer")
    assert labels.classes.tolist() == ["good", "bad", "odd"]
    assert labels.n_answers == 4
    with pytest.warns(tu.exceptions.DataWarning, match="no votes"):
        assert tu.read_labels(path, abstain="bad", classes=["good", "odd"]).abstentions.sum() > 1
    items = tmp_path / "items.csv"
    items.write_text("item,topic\n1,law\n", encoding="utf-8")
    assert tu.read_labels(path, items=items).item_column("topic")[0] == "law"


def test_unknown_files_are_described(tmp_path):
    path = write_json(tmp_path / "x.json", {"foo": 1, "bar": 2})
    (tmp_path / "y.txt").write_text("hello", encoding="utf-8")
    for unknown in (path, tmp_path / "y.txt"):
        with pytest.raises(InvalidFile):
            tu.read_labels(unknown)
    (tmp_path / "z").mkdir()
    (tmp_path / "z" / "a.bin").write_bytes(b"x")
    with pytest.raises(InvalidFile, match=r"folder with 'a\.bin'"):
        tu.read_export(tmp_path / "z")
    with pytest.raises(InvalidParameter):
        tu.read_labels(path, file_format="label-studi")
    with pytest.raises(tu.exceptions.MissingFile):
        tu.read_export(tmp_path / "nothing.json")


def test_a_workbook_needs_a_reader_of_workbooks(tmp_path, monkeypatch):
    import zipfile

    path = tmp_path / "export.xlsx"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
    monkeypatch.setattr("trueup.adapters.content.is_installed", lambda name: False)
    with pytest.raises(tu.exceptions.MissingExtra):
        tu.read_export(path)


def test_what_is_known_of_items_does_not_run_in_a_spreadsheet(tmp_path):
    labels = tu.Labels.from_frame({"item": [1, 1], "labeler": ["a", "b"], "label": ["-", "+"]})
    labels = labels.with_items({"item": [1], "text": ["=cmd|'/c calc'!A1"]})
    posterior = tu.noise.fit(labels, "majority").posterior(labels)
    path = tmp_path / "table.csv"
    tu.adapters.write_tasks(labels, path, file_format="csv", posterior=posterior)
    row = path.read_text(encoding="utf-8").splitlines()[1]
    assert row.startswith("1,+,")
    assert row.endswith(",'=cmd|'/c calc'!A1")
