"""Figures 5, 6 and 8 of Nguyen, Ramanan and Fowlkes (2018), "Active testing", ICML: which test labels to vet."""
