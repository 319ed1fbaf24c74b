"""The experiment of Urkullu et al. (2019): which view of the truth ranks classifiers best on crowd labels."""
