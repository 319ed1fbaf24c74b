"""trueup metrics: what can be measured."""

import json

from trueup.metrics import get_metric, list_metrics


def test_every_metric_is_listed_with_what_it_needs(run_main):
    records = {one["name"]: one for one in json.loads(run_main("metrics", "--json").out)["metrics"]}
    assert sorted(records) == list_metrics()
    assert records["accuracy"]["needs"] == "classes"
    assert records["auc"]["needs"] == "scores"
    assert records["log_loss"]["needs"] == "probabilities"
    assert records["log_loss"]["better"] == "lower"
    assert records["log_loss"]["bounds"] == [0.0, None]
    assert records["f1"]["description"] == get_metric("f1", ["no", "yes"]).description
    out = run_main("metrics").out
    assert all(name in out for name in list_metrics())
