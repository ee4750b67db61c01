"""The terminal face of durtui: the command, the headless table and the app."""
