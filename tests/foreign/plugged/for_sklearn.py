"""A plugin for the pytest that runs scikit-learn's tests; `startup.py` has made ours the default backend of joblib."""
