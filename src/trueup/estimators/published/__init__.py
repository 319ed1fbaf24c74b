"""The methods of the papers and of common practice, one file each."""
