"""Figures 5 to 8 of Nguyen, Ramanan and Fowlkes (2018), "Active testing", ICML: which test labels and masks to vet."""
