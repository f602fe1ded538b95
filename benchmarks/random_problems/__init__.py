"""How fast is a kernel machine on problems nobody chose? Random ones, beside peers."""
