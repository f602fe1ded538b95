"""How fast, and how exact? Measurements beside other libraries, as printed tables.

python -m benchmarks               time and accuracy beside scikit-learn; start-up;
                                   data files
python -m benchmarks.agreement     distance to LIBSVM's answers, and certificates
python -m benchmarks.working_sets  first against second order working sets

python -m benchmarks.svmlight      speed and memory of reading and writing data files

Kernel machines:

python -m benchmarks.kernel              time, memory and objective beside peers

Linear machines:

python -m benchmarks.linear              time to an optimum beside other libraries
python -m benchmarks.linear_convergence  defaults on raw features, set by set
python -m benchmarks.linear_memory       what a fit takes beside its input
"""
