"""The vetting app: experts answer in a browser, and the estimate moves while they work."""
