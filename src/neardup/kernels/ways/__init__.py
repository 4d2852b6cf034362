"""Ways of matches from kept documents outwards, by shared features and by distance."""
