def main(x): pass
