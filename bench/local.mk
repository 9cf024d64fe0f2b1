# bench/: see HACKING.md for what lives here
