"""The source papers' experiments: figures as published and as corrected, and the papers' own formulas to compare."""
