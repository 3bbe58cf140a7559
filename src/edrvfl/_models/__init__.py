"""What a fit leaves: frozen records that answer."""
