"""Real and generated exports of the tools: everything that is in each file comes out, counted without the readers.

The expected numbers come from the files themselves by a few lines of plain Python, or are written beside the files'
descriptions; none is what a reader printed.
"""

import json
import tarfile
import warnings
from collections import Counter

import numpy as np
import pytest

import trueup as tu
from trueup.exceptions import DataWarning, TrueupError

pytestmark = pytest.mark.adapters

# Votes, labelers, gold, abstentions and runs of the question in each file.
COUNTS = {
    # 12 tasks × 3 people, of whom two skipped once; three truths of user 9; two models
    "label_studio/generated_3_annotators.json": (34, 3, 3, 2, 1),
    # the same as rows: the skips are gone and user 9 is one more annotator
    "label_studio/generated_3_annotators_min.json": (37, 4, 0, 0, 1),
    "label_studio/generated_3_annotators.csv": (37, 4, 0, 0, 1),
    "label_studio/csv_test2.json": (1, 1, 0, 0, 1),
    # 4 annotations that name nobody, two of them on one task
    "label_studio/tasks_annotations_predictions.json": (4, 2, 0, 0, 1),
    # 6 answers × 3 members, of whom two gave no grade that could be parsed
    "inspect_ai/generated_panel_of_three.eval": (16, 3, 0, 2, 1),
    "inspect_ai/generated_panel_of_three.json": (16, 3, 0, 2, 1),
    # 6 samples × 2 epochs × (3 graders + includes), one grader unparsed on one sample in both epochs
    "inspect_ai/generated_three_graders_2_epochs.eval": (46, 4, 0, 2, 2),
    "inspect_ai/generated_three_graders_2_epochs.json": (46, 4, 0, 2, 2),
    "inspect_ai/log_formats.json": (1, 1, 0, 0, 1),
    "inspect_ai/log_streaming.eval": (4, 1, 0, 0, 2),
    "inspect_ai/popularity_scored.eval": (10, 1, 0, 0, 1),
    "inspect_ai/security-guide_model_graded.json": (3, 1, 0, 0, 1),
    # multiple choice: the key is gold, nobody votes
    "inspect_ai/mmlu-summary-choices.eval": (0, 0, 1, 0, 0),
    "inspect_ai/eee_pubmedqa_gpt4o_mini.json": (0, 0, 2, 0, 0),
    # 8 records × 3 people, one answer discarded and one a draft; the nested file has lost that
    "argilla/argilla_flat.json": (22, 3, 0, 1, 1),
    "argilla/argilla_nested.json": (24, 3, 0, 0, 1),
    # 75 pairs in both orders, three verdicts "error"
    "mt_bench/gpt-4_pair.jsonl": (147, 1, 0, 3, 2),
    "mt_bench/gpt-4_single.jsonl": (60, 1, 0, 0, 1),
    "mt_bench/gpt-4_single_5_systems.jsonl": (80, 1, 0, 0, 1),
    "sagemaker_ground_truth/ic_data.tar.gz": (1510, 97, 0, 0, 1),
    # 67 accepted, 123 rejected, 10 ignored
    "prodigy/annotated_github-issues-DOCUMENTATION-textcat.jsonl": (190, 1, 0, 10, 1),
    "doccano/text_classification_example.jsonl": (3, 1, 0, 0, 1),
    "lm_eval/samples_math_perturbed_full_2026-01-21T03-44-18.458309.jsonl": (10, 1, 0, 0, 1),
    # 21 verdicts, of which two pairs are of the same text
    "ragas/annotated_data.json": (21, 1, 19, 0, 2),
    "ragas/sample_annotated_summary.json": (19, 1, 19, 0, 1),
    "mturk/platform_amt1.csv": (27, 18, 0, 0, 1),
    "mturk/platform_amt2.csv": (63, 17, 0, 0, 1),
    "mturk/platform_amt3.csv": (30, 18, 0, 0, 1),
    "mturk/platform_amt4.csv": (16, 11, 0, 0, 1),
    "mturk/platform_amt5.csv": (12, 10, 0, 0, 1),
    "appen/platform_cf1.csv": (27, 18, 0, 0, 1),
    "appen/platform_cf2.csv": (63, 17, 0, 0, 1),
    "appen/platform_cf3.csv": (30, 18, 0, 0, 1),
    "appen/platform_cf4.csv": (16, 11, 0, 0, 1),
    "appen/platform_cf5.csv": (12, 10, 0, 0, 1),
    # 10 units × 15 judgements
    "appen/relex-binary-choice.csv": (150, 67, 0, 0, 1),
}
# Several questions: votes of each.
QUESTIONS = {"promptfoo/redteam_tracing_results.json": {"Harmful": 5, "Harmful/Iterative": 5}}
# Files that hold no votes of classes, and what an error says of them.
REFUSED = {
    "label_studio/three_tasks_two_gts.json": "rectanglelabels",
    "label_studio/csv_test2_result.csv": "name it with `question",
    "inspect_ai/eee_data_with_llm_scoring.json": "no question",
    "inspect_ai/log_version_3.json": "no question",
    "inspect_ai/log_with_nan.json": "no question",
    "inspect_ai/no-samples.json": "cancelled",
    "inspect_ai/popularity_unscored.eval": "without scores (10)",
    "promptfoo/config-multishot_output.json": "answers without assertions (8)",
    "promptfoo/llama4-scout_output.json": "answers without assertions (10)",
    "promptfoo/simple-cli_output.json": "answers without assertions (8)",
    "doccano/sequence_labeling_example.jsonl": "mark parts of the text (3)",
    "doccano/text_classification_example.csv": "not known",
    "sagemaker_ground_truth/object_detection_sample_output.manifest": "boxes",
    "sagemaker_ground_truth/classification_output.manifest": "2 questions",
    "lm_eval/results_2026-01-21T03-44-18.458309.json": "not known",
}


@pytest.mark.parametrize("name", COUNTS)
def test_counts_of(name, exports_folder):
    export = tu.read_export(exports_folder / name)
    votes = export.votes
    n_votes = sum(label is not None for label in votes["label"])
    n_runs = len(set(votes["run"]))
    read = (n_votes, len(set(votes["labeler"])), len(export.gold), len(votes["label"]) - n_votes, n_runs)
    assert read == COUNTS[name]
    if n_votes and len({label for label in votes["label"] if label is not None}) > 1:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            labels = export.labels()
        assert (labels.n_votes, labels.n_labelers, int(labels.abstentions.sum())) == (read[0], read[1], read[3])


@pytest.mark.parametrize("name", QUESTIONS)
def test_questions_of(name, exports_folder):
    export = tu.read_export(exports_folder / name)
    assert {question: len(export.of(question).votes["item"]) for question in export.questions} == QUESTIONS[name]


@pytest.mark.parametrize("name", REFUSED)
def test_what_holds_no_votes_says_so(name, exports_folder):
    with pytest.raises(TrueupError) as caught:
        tu.read_export(exports_folder / name).labels()
    assert REFUSED[name] in str(caught.value)


# The same counts, from the files by plain means.


def lines_of(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_verdicts_of_a_file_keep_their_sides_and_truths(exports_folder):
    """Every verdict of the file, with the systems in the order of their names."""
    pairs = lines_of(exports_folder / "mt_bench/gpt-4_pair.jsonl")
    export = tu.read_export(exports_folder / "mt_bench/gpt-4_pair.jsonl")
    flips = sum({row["g1_winner"], row["g2_winner"]} == {"model_1", "model_2"} for row in pairs)
    assert f"in {flips} of " in export.notes[-1]
    said = Counter(zip(export.votes["label"], export.votes["run"], strict=True))
    order = {"model_1": "first", "model_2": "second", "tie": "tie", "error": None}
    assert all(row["model_1"] < row["model_2"] for row in pairs)
    assert said == Counter((order[row[key]], run) for row in pairs for run, key in ((1, "g1_winner"), (2, "g2_winner")))
    for name, metric in (("annotated_data", "helpfulness"), ("sample_annotated_summary", "summary_accuracy")):
        rows = json.loads((exports_folder / f"ragas/{name}.json").read_text(encoding="utf-8"))[metric]
        gold = tu.read_export(exports_folder / f"ragas/{name}.json").gold
        truths = {json.dumps(r["metric_input"]): r["metric_output"] ^ (not r["is_accepted"]) for r in rows}
        assert sum(gold.values()) == sum(truths.values())


def test_ground_truth_beside_its_own_truth(exports_folder):
    """302 pictures × 5 votes: the majority is right on 272 of them, and a model of the workers on at least as many."""
    path = exports_folder / "sagemaker_ground_truth/ic_data.tar.gz"
    export = tu.read_export(path)
    labels = export.labels()
    assert labels.votes_per_item.tolist() == [5] * 302
    with tarfile.open(path) as archive:
        truth = {row["ImageId"]: row["Label"] for row in json.load(archive.extractfile("ic_data/true_labels.json"))}
    true = np.array([truth[item.rpartition("/")[2].split(".")[0]] for item in labels.items])
    rights = {
        name: int((labels.classes[tu.noise.fit(labels, name).posterior(labels).argmax(axis=1)] == true).sum())
        for name in ("majority", "dawid-skene")
    }
    assert rights["majority"] == 272
    assert rights["dawid-skene"] >= 272
    service = dict(zip(export.answers.predictions["item"], export.answers.predictions["prediction"], strict=True))
    assert sum(service[item] == name for item, name in zip(labels.items, true, strict=True)) == 272
