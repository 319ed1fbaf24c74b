"""What every package stands on: types, checks of input, optional imports, writing files, numbers as words."""
