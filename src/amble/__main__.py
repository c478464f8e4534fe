from amble.cli import main

main()
