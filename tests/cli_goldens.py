"""What did LIBSVM 3.24 and LIBLINEAR 2.30 print? Newton's lines: LIBLINEAR 2.50.

The data are those of `cli_runs.write_classes` and `write_numbers`.
"""

GOLDENS = {
    "svm-train two": """\
*
optimization finished, #iter = 50
nu = 0.433875
obj = -30.718671, rho = -0.110385
nSV = 43, nBSV = 34
Total nSV = 43
""",
    "svm-train -t 0 three": """\
.*.*
optimization finished, #iter = 120
nu = 0.489933
obj = -26.849192, rho = -0.093717
nSV = 32, nBSV = 27
.**.*
optimization finished, #iter = 86
nu = 0.504645
obj = -26.964826, rho = -0.382679
nSV = 32, nBSV = 25
*
optimization finished, #iter = 52
nu = 0.371946
obj = -20.257148, rho = -0.121901
nSV = 25, nBSV = 21
Total nSV = 60
""",
    "svm-train -s 1 -n 0.3 two": """\
*
optimization finished, #iter = 80
C = 3.950742
obj = 18.902118, rho = -0.546118
nSV = 36, nBSV = 22
Total nSV = 36
""",
    "svm-train -s 2 two": """\
*
optimization finished, #iter = 37
obj = 380.473581, rho = 18.678689
nSV = 48, nBSV = 41
""",
    "svm-train -s 3 num": """\
*
optimization finished, #iter = 69
nu = 0.780886
obj = -19.368888, rho = -0.382907
nSV = 53, nBSV = 41
""",
    "svm-train -s 4 num": """\
*
optimization finished, #iter = 89
epsilon = 0.214587
obj = -21.243756, rho = -0.412776
nSV = 34, nBSV = 23
""",
    "svm-train -w1 2 two": """\
*
optimization finished, #iter = 63
obj = -38.708287, rho = -0.086861
nSV = 41, nBSV = 32
Total nSV = 41
""",
    "svm-train -v 5 two": """\
*
optimization finished, #iter = 51
nu = 0.466792
obj = -26.359976, rho = -0.297808
nSV = 38, nBSV = 28
Total nSV = 38
*
optimization finished, #iter = 34
nu = 0.442773
obj = -25.269143, rho = -0.137244
nSV = 36, nBSV = 28
Total nSV = 36
*
optimization finished, #iter = 36
nu = 0.459455
obj = -26.441573, rho = 0.058441
nSV = 38, nBSV = 31
Total nSV = 38
*
optimization finished, #iter = 38
nu = 0.452417
obj = -24.726125, rho = 0.059329
nSV = 35, nBSV = 28
Total nSV = 35
*
optimization finished, #iter = 45
nu = 0.450620
obj = -24.026511, rho = 0.008809
nSV = 37, nBSV = 29
Total nSV = 37
Cross Validation Accuracy = 84.4444%
""",
    "svm-train -v 5 -s 3 num": """\
*
optimization finished, #iter = 43
nu = 0.740111
obj = -16.757498, rho = -0.248567
nSV = 39, nBSV = 33
*
optimization finished, #iter = 43
nu = 0.684615
obj = -17.150890, rho = -0.311525
nSV = 38, nBSV = 29
*
optimization finished, #iter = 63
nu = 0.814281
obj = -16.377993, rho = -0.419981
nSV = 43, nBSV = 34
*
optimization finished, #iter = 61
nu = 0.752375
obj = -18.082983, rho = -0.598702
nSV = 42, nBSV = 32
*
optimization finished, #iter = 57
nu = 0.738958
obj = -17.284199, rho = -0.417837
nSV = 41, nBSV = 31
Cross Validation Mean squared error = 0.161833
Cross Validation Squared correlation coefficient = 0.938386
""",
    "svm-predict two": """\
Accuracy = 88.8889% (80/90) (classification)
""",
    "svm-predict num": """\
Mean squared error = 0.0935237 (regression)
Squared correlation coefficient = 0.963589 (regression)
""",
    "train -s 1 two": """\
..*
optimization finished, #iter = 21
Objective value = -27.773434
nSV = 44
""",
    "train -s 3 two": """\
..*
optimization finished, #iter = 26
Objective value = -25.764273
nSV = 30
""",
    "train -s 4 three": """\
*.**..**
optimization finished, #iter = 38
Objective value = -56.093268
nSV = 132
""",
    "train -s 5 two": """\

optimization finished, #iter = 6
Objective value = 29.641086
#nonzeros/#features = 5/5
""",
    "train -s 6 two": """\
iter   1  #CD cycles 1
iter   2  #CD cycles 1
iter   3  #CD cycles 2
iter   4  #CD cycles 1
=========================
optimization finished, #iter = 4
Objective value = 28.951878
#nonzeros/#features = 5/5
""",
    "train -s 7 two": """\

optimization finished, #iter = 6
Objective value = -27.865659
""",
    "train -s 12 num": """\

optimization finished, #iter = 9
Objective value = -16.700636
nSV = 54
""",
    "train -s 13 num": """\
*
optimization finished, #iter = 9
Objective value = -25.994007
nSV = 59
""",
    "train -v 5 two": """\
.*
optimization finished, #iter = 19
Objective value = -23.924429
nSV = 39
.*
optimization finished, #iter = 19
Objective value = -21.422629
nSV = 35
.*.
optimization finished, #iter = 20
Objective value = -24.490381
nSV = 40
..*
optimization finished, #iter = 21
Objective value = -20.013720
nSV = 33
..*
optimization finished, #iter = 22
Objective value = -19.995438
nSV = 32
Cross Validation Accuracy = 85.5556%
""",
    "train -s 0 two": """\
init f 6.238e+01 |g| 3.355e+01
iter  1 f 3.321e+01 |g| 8.598e+00 CG   2 step_size 1.00e+00
iter  2 f 2.851e+01 |g| 2.373e+00 CG   2 step_size 1.00e+00
iter  3 f 2.788e+01 |g| 3.144e-01 CG   2 step_size 1.00e+00
iter  4 f 2.787e+01 |g| 1.203e-02 CG   2 step_size 1.00e+00
""",
    "train -s 2 three": """\
init f 9.000e+01 |g| 7.125e+01
iter  1 f 6.476e+01 |g| 4.512e+00 CG   2 step_size 1.00e+00
iter  2 f 6.460e+01 |g| 3.258e-01 CG   2 step_size 1.00e+00
iter  3 f 6.460e+01 |g| 1.777e-02 CG   2 step_size 1.00e+00
init f 9.000e+01 |g| 8.030e+01
iter  1 f 5.547e+01 |g| 5.109e+00 CG   2 step_size 1.00e+00
iter  2 f 5.525e+01 |g| 8.021e-01 CG   2 step_size 1.00e+00
iter  3 f 5.524e+01 |g| 7.486e-02 CG   2 step_size 1.00e+00
init f 9.000e+01 |g| 8.752e+01
iter  1 f 5.094e+01 |g| 1.027e+01 CG   2 step_size 1.00e+00
iter  2 f 4.977e+01 |g| 1.388e+00 CG   2 step_size 1.00e+00
iter  3 f 4.974e+01 |g| 9.824e-02 CG   2 step_size 1.00e+00
""",
    "train -s 11 num": """\
init f 1.290e+02 |g| 1.040e+02
iter  1 f 1.734e+01 |g| 6.564e+00 CG   2 step_size 1.00e+00
iter  2 f 1.685e+01 |g| 7.109e-01 CG   2 step_size 1.00e+00
iter  3 f 1.685e+01 |g| 1.835e-02 CG   2 step_size 1.00e+00
iter  4 f 1.685e+01 |g| 4.945e-04 CG   2 step_size 1.00e+00
""",
    "train -s 21 two": """\
..*
optimization finished, #iter = 28
Objective value = 0.000094
nSV = 58
rho = 0.006932
""",
    "predict three": """\
Accuracy = 73.3333% (66/90)
""",
    "predict num": """\
Mean squared error = 0.327116 (regression)
Squared correlation coefficient = 0.962569 (regression)
""",
}
