"""How fast, and how exact? Measurements beside other libraries, as printed tables.

python -m benchmarks               time and accuracy beside scikit-learn; start-up
python -m benchmarks.agreement     distance to LIBSVM's answers, and certificates
python -m benchmarks.working_sets  first against second order working sets
"""
