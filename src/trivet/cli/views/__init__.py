"""What people see of each kind of answer."""
