"""The headless core of durtui: scenarios, faults, stores, lanes and figures. No terminal in here."""
