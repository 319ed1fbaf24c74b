"""Tables 10–15 and Figures 9–18 of Su (2024), "On Truthing Issues in Supervised Classification", JMLR 25."""
