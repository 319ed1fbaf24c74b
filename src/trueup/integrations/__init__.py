"""Where evaluations run: pytest, Inspect, MLflow and promptfoo, each a module that only its users load."""
