"""What the commands of ``toolc`` do, one module each; cli.py holds their options."""
