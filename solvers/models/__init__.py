"""What is saved and scores documents: linear models, trees and blends of them."""
