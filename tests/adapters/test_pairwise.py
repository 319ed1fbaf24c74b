from tool_files import mt_bench, votes_of, write_json, write_lines

import trueup as tu


def read(tmp_path, rows, name="rows.jsonl", **how):
    return tu.read_export(write_lines(tmp_path / name, rows), **how)


def test_mt_bench_has_both_orders_turned_back_already(tmp_path):
    rows = [
        mt_bench(81, "model_1", "model_2"),
        mt_bench(82, "model_2", "model_2", a="beta", b="alpha"),
        mt_bench(83, "tie", "error", turn=2),
    ]
    export = read(tmp_path, rows)
    assert votes_of(export, "run") == [
        ("81/alpha/beta", "gpt-4", "first", 1),
        ("81/alpha/beta", "gpt-4", "second", 2),
        ("82/alpha/beta", "gpt-4", "first", 1),
        ("82/alpha/beta", "gpt-4", "first", 2),
        ("83/alpha/beta/turn 2", "gpt-4", "tie", 1),
        ("83/alpha/beta/turn 2", "gpt-4", None, 2),
    ]
    assert "in 1 of 2 pairs" in export.notes[-1]
    pairs = export.pairs()
    assert pairs.contests == [(81, "alpha", "beta"), (82, "alpha", "beta"), ("83/turn 2", "alpha", "beta")]
    assert pairs.shown.tolist() == [0, 1, 1, 0, 0]
    assert pairs.n_open == 1
    labels = export.labels()  # without a warning of repeated votes: each is of another order
    assert labels.has_repeats
    assert labels.item_column("first").tolist() == ["alpha"] * 3


def test_arena_votes(tmp_path):
    def row(winner, judge, a="alpha", b="beta"):
        return {"question_id": 1, "model_a": a, "model_b": b, "winner": winner, "judge": judge, "turn": 1}

    rows = [
        row("model_a", "expert_1"),
        row("model_b", ["Claude Instant", "x"], "beta", "alpha"),
        row("tie (bothbad)", "a@b.org"),
    ]
    assert [one[1:3] for one in votes_of(read(tmp_path, rows), "run")] == [
        ("expert_1", "first"),
        ("Claude Instant", "first"),
        ("annotator-1", "tie"),
    ]


def test_judge_bench_is_turned_back_here(tmp_path):
    def row(pair, label, *decisions):
        judgments = [None if one is None else {"judgment": {}, "decision": one} for one in decisions]
        return {"pair_id": pair, "label": label, "source": "mmlu", "response_A": "a", "judgments": judgments}

    rows = [row("p1", "A>B", "A>B", "B>A"), row("p2", "B>A", "A>B", "A>B"), row("p3", "A>B", "A=B", None)]
    name = "dataset=x,response_model=m,judge_name=arena_hard,judge_model=o1-mini.jsonl"
    export = read(tmp_path, rows, name)
    assert votes_of(export, "run") == [
        ("p1", "o1-mini", "first", 1),
        ("p1", "o1-mini", "first", 2),
        ("p2", "o1-mini", "first", 1),
        ("p2", "o1-mini", "second", 2),
        ("p3", "o1-mini", "tie", 1),
        ("p3", "o1-mini", None, 2),
    ]
    assert export.votes["shown"][:4] == [0, 1, 0, 1]
    assert export.gold == {"p1": "first", "p2": "second", "p3": "first"}


def test_alpaca_eval_preferences(tmp_path):
    def row(instruction, preference, first="base", second="new"):
        about = {"instruction": instruction, "output_1": "x", "output_2": "y", "annotator": "judge"}
        return {**about, "generator_1": first, "generator_2": second, "preference": preference}

    rows = [row("a", 1), row("b", 2.0), row("c", 1.5), row("d", None), row("e", 1.2), row("f", 1, "new", "base")]
    export = tu.read_export(write_json(tmp_path / "annotations.json", rows))
    assert export.votes["label"] == ["first", "second", "tie", None, "first", "second"]
    assert "soft preferences read as the likelier side (1)" in " ".join(export.notes)
    pairs = export.pairs()
    assert set(pairs.shown.tolist()) == {2}
    assert any("does not say in which order" in note for note in pairs.notes)


def test_reward_bench_is_in_canonical_order(tmp_path):
    def row(prompt, chosen, rejected, result):
        return {"prompt": prompt, "text_chosen": chosen, "text_rejected": rejected, "results": result, "subset": "chat"}

    rows = [row("p", "a", "b", 1), row("q", "b", "a", 1), row("r", "a", "b", 0), row("s", "a", "b", 0.5)]
    export = read(tmp_path, rows, "model-x_outputs.jsonl")
    assert [one[1:3] for one in votes_of(export, "run")] == [
        ("model-x", "first"),
        ("model-x", "second"),
        ("model-x", "second"),
        ("model-x", None),
    ]
    assert list(export.gold.values()) == ["first", "second", "first", "first"]
    columns = {name: [one[name] for one in rows] for name in rows[0]}
    assert tu.read_export(write_json(tmp_path / "model-x.json", columns)).votes == export.votes


def test_a_reward_model_is_named_by_its_file_with_its_version(tmp_path):
    row = {"prompt": "q", "text_chosen": "a", "text_rejected": "b", "results": 1}
    assert set(read(tmp_path, [row], name="llama-3.1_outputs.jsonl").votes["labeler"]) == {"llama-3.1"}
